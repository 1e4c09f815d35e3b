// The worker's side of the package: owns the engine and answers calls. Knows neither browser nor Node.js.
import { ReasoningSplitter } from '../chat/reasoning.js'
import { ChatRenderer, opensThinking } from '../chat/template.js'
import { QwasmError, toWire } from '../errors.js'
import { sourceName } from '../loader/open.js'
import type { Core, Engine, Session } from '../runtime/core.js'
import type { AddedToken, ChatResult, GenerateResult, LoadProgress, ModelInfo, RenderOptions } from '../types.js'
import { generate, SlicePacer, type Run } from './generate.js'
import { makeModelInfo } from './info.js'
import { loadModel, type LoadPlatform } from './load.js'
import { computeLogits } from './logits.js'
import type { Calls, FromWorker, LoadRequest, Method, ToWorker } from './protocol.js'
import { Control, Queue } from './queue.js'

/** What differs between the worker's script in a browser and under Node.js. */
export interface HostPort extends LoadPlatform {
  post(message: FromWorker, transfer?: ArrayBuffer[]): void
  onMessage(receive: (message: ToWorker) => void): void
  /** Resolves after the messages that wait were received. */
  pause(): Promise<void>
}

type Handlers = {
  [M in Method]: (
    args: Calls[M]['args'],
    control: Control,
    event: (event: Calls[M]['events']) => void
  ) => Promise<Calls[M]['result']> | Calls[M]['result']
}

interface Loaded {
  core: Core
  engine: Engine
  info: ModelInfo
  chat: ChatRenderer
}

export function startHost(port: HostPort): void {
  const host = new Host(port)
  const controls = new Map<number, Control>()

  const answer = async (id: number, method: Method, args: unknown): Promise<void> => {
    const control = new Control()
    controls.set(id, control)
    try {
      const handler = host.handlers[method] as (args: unknown, control: Control, event: (event: unknown) => void) => unknown
      const result = await handler(args, control, (event) => port.post({ kind: 'event', id, event }))
      port.post({ kind: 'result', id, result }, result instanceof Float32Array ? [result.buffer as ArrayBuffer] : [])
    } catch (error) {
      port.post({ kind: 'error', id, error: toWire(error) })
    } finally {
      controls.delete(id)
    }
  }
  port.onMessage((message) => {
    if (message.kind === 'call') return void answer(message.id, message.method, message.args)
    const control = controls.get(message.id)
    if (!control) return // the call ended before the message came
    control.obey(message.kind)
  })
}

class Host {
  readonly #port: HostPort
  readonly #queue = new Queue()
  readonly #pacer = new SlicePacer()
  #loaded: Loaded | undefined
  #session: Session | undefined

  constructor(port: HostPort) {
    this.#port = port
  }

  readonly handlers: Handlers = {
    load: (request, control, event) => this.#load(request, control, event),
    inspect: ({ context, bandwidth }) => {
      const { engine } = this.#model
      const inspectAt = (tokens: number) => engine.inspect(tokens, bandwidth * 1e9)
      return inspectAt(context ?? Math.min(Number(inspectAt(1)['max_position_embeddings']), 4096))
    },
    tokenize: ({ text, special }) => this.#text.tokenize(text, special),
    detokenize: ({ ids, skipSpecial }) => this.#text.detokenize(ids, skipSpecial),
    renderChat: ({ messages, options }) => this.#model.chat.render(messages, options).text,
    encodeChat: ({ messages, options }) => this.#encode(messages, options).ids,
    generate: async ({ prompt, options }, control, event) => {
      const ids = typeof prompt === 'string' ? Int32Array.from(this.#text.tokenize(prompt, true)) : prompt
      return this.#generate(control, ids, options, event)
    },
    chat: async ({ messages, options }, control, event) => {
      const { ids, thinking } = this.#encode(messages, options)
      const splitter = new ReasoningSplitter(thinking)
      const result = await this.#generate(control, Int32Array.from(ids), options, (text) => splitter.push(text).forEach(event))
      splitter.end().forEach(event)
      return { ...result, content: splitter.content, reasoning: splitter.reasoning } satisfies ChatResult
    },
    logits: ({ ids, positions }, control) =>
      this.#queue.run(control, () => {
        const { engine, info } = this.#model
        return computeLogits(engine, info.vocabSize, ids, positions, this.#pacer, async () => {
          await this.#port.pause()
          control.throwIfAborted()
        })
      }),
    readBandwidth: (_none, control) => this.#queue.run(control, async () => this.#model.engine.readBandwidth()),
  }

  get #model(): Loaded {
    if (!this.#loaded) throw new QwasmError('wrong_state', 'The model is not loaded.')
    return this.#loaded
  }

  /** The engine for a call with text. */
  get #text(): Engine {
    const { engine, info } = this.#model
    if (!info.hasTokenizer) {
      throw new QwasmError('no_tokenizer', 'The model came without a tokenizer, so it takes and gives token ids only, no text.')
    }
    return engine
  }

  async #load(request: LoadRequest, control: Control, event: (progress: LoadProgress) => void): Promise<ModelInfo> {
    const started = performance.now()
    const { core, engine, rung, notes } = await loadModel(this.#port, request, control.gate, event)
    const raw = engine.info()
    const chat = new ChatRenderer((raw['chat_templates'] ?? {}) as Record<string, string>, (raw['added_tokens'] ?? []) as AddedToken[])
    const info = makeModelInfo(raw, rung, chat.names, performance.now() - started, sourceName(request.source))
    info.notes.push(...notes)
    this.#loaded = { core, engine, info, chat }
    return info
  }

  #encode(messages: unknown, options: RenderOptions): { ids: number[]; thinking: boolean } {
    const { chat, info } = this.#model
    const engine = this.#text
    const rendered = chat.render(messages, options)
    return { ids: engine.tokenize(rendered.marked, true, rendered.mark), thinking: opensThinking(rendered, info.addedTokens) }
  }

  #generate(control: Control, ids: Int32Array, options: Calls['generate']['args']['options'], onText: (text: string) => void) {
    return this.#queue.run(control, async (): Promise<GenerateResult> => {
      const { engine, info } = this.#model
      const session = (this.#session ??= engine.newSession())
      const run: Run = {
        session,
        defaults: info,
        loadMs: info.loadMs,
        pacer: this.#pacer,
        control,
        pause: () => this.#port.pause(),
      }
      try {
        return await generate(run, ids, options, onText)
      } catch (error) {
        if (error instanceof QwasmError && error.code !== 'dead') this.#dropSession()
        throw error
      }
    })
  }

  /** After a failure the sequence's state is not worth keeping; the next call begins with a new one. */
  #dropSession(): void {
    this.#session?.free()
    this.#session = undefined
  }
}
