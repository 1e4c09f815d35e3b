// The worker's side of the package: owns the engine and answers calls. Knows neither browser nor Node.js.
import type { Rest } from '../cache/prepared.js'
import type { Guide } from '../chat/guide.js'
import { promptRoom, slide } from '../chat/slide.js'
import { ChatRenderer } from '../chat/template.js'
import { beginTurn } from '../chat/turn.js'
import { QwasmError, toWire } from '../errors.js'
import { Exports } from '../gguf/exports.js'
import { sourceName } from '../loader/open.js'
import type { Core, Engine } from '../runtime/core.js'
import { BLOCK_TOKENS } from '../runtime/session.js'
import type { AddedToken, ChatOptions, GenerateResult, LoadProgress, Message, ModelInfo, RenderOptions } from '../types.js'
import { Batch } from './batch.js'
import { embed, rerank, type Reading } from './embed.js'
import { generate, type Run } from './generate.js'
import { makeModelInfo } from './info.js'
import { loadModel, type LoadPlatform } from './load.js'
import { computeLogits } from './logits.js'
import type { Calls, FromWorker, LoadRequest, Method, Plain, ToWorker } from './protocol.js'
import { Control, Queue } from './queue.js'
import { restoreSession, saveSession } from './saved-session.js'
import { Sequences, type Sequence } from './sequences.js'

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

type Texts = Record<string, string>

interface Loaded {
  core: Core
  engine: Engine
  info: ModelInfo
  chat: ChatRenderer
  queue: Queue
  batch: Batch
  sequences: Sequences
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
      port.post({ kind: 'result', id, result }, ArrayBuffer.isView(result) ? [result.buffer as ArrayBuffer] : [])
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

/** Ids of a whole text with what its tokenizer puts around texts. What a template has put there already does not come twice. */
function surrounded(ids: number[], { beginIds, endIds }: ModelInfo): number[] {
  const begins = beginIds.every((id, i) => ids[i] === id)
  const ends = endIds.every((id, i) => ids[ids.length - endIds.length + i] === id)
  return [...(begins ? [] : beginIds), ...ids, ...(ends ? [] : endIds)]
}

class Host {
  readonly #port: HostPort
  #loaded: Loaded | undefined
  readonly #sessions = new Map<number, Sequence>()
  #nextSession = 1
  readonly #exports = new Exports()

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
    tokenize: ({ text, special, addSpecialTokens }) => {
      const ids = this.#text.tokenize(text, special)
      return addSpecialTokens ? surrounded(ids, this.#model.info) : ids
    },
    detokenize: ({ ids, skipSpecial }) => this.#text.detokenize(ids, skipSpecial),
    renderChat: ({ messages, options }) => this.#model.chat.render(messages, options).text,
    encodeChat: ({ messages, options }) => this.#encode(messages, options),
    generate: async ({ prompt, options, session }, control, event) => {
      const encode = (text: string) => Int32Array.from(surrounded(this.#text.tokenize(text, true), this.#model.info))
      const ids = typeof prompt === 'string' ? encode(prompt) : prompt
      return this.#generate(control, ids, options, event, session)
    },
    chat: async ({ messages, options, session }, control, event) => {
      const { chat, info } = this.#model
      const engine = this.#text
      const encode = (text: string, mark: string) => engine.tokenize(text, true, mark)
      const kept = this.#fitting(messages, options)
      const { ids, guide, answer } = beginTurn(chat, info.addedTokens, encode, kept.messages, options)
      const onText = (text: string) => answer.push(text).forEach(event)
      const result = await this.#generate(control, Int32Array.from(ids), options, onText, session, guide)
      answer.end().forEach(event)
      return { ...result, ...answer.result(result.finishReason), droppedMessages: kept.dropped }
    },
    logits: ({ ids, positions }, control) => {
      const { engine, info, queue, batch } = this.#model
      return queue.run(control, () => computeLogits(engine, info.vocabSize, ids, positions, batch, control))
    },
    embed: ({ texts, options }, control) => this.#model.queue.run(control, () => embed(this.#reading(control), texts, options)),
    rerank: ({ query, documents, options }, control) =>
      this.#model.queue.run(control, () => rerank(this.#reading(control), query, documents, options)),
    readBandwidth: (_none, control) => {
      const { engine, queue, batch } = this.#model
      return queue.run(control, async () => (await batch.turn(control, () => engine.readBandwidth()))!)
    },
    openGguf: ({ name }) => this.#exports.open(this.#model.engine, name),
    readGguf: ({ file }) => this.#exports.read(file),
    closeGguf: ({ file }) => this.#exports.close(file),
    openSession: () => {
      this.#sessions.set(this.#nextSession, this.#model.sequences.own())
      return this.#nextSession++
    },
    saveSession: ({ session }, control) => {
      const { info, queue } = this.#model
      const owned = this.#owned(session)
      return queue.run(control, () => saveSession(owned.session, info, () => this.#port.pause()), owned)
    },
    restoreSession: ({ session, bytes }, control) => {
      const { info, queue, sequences } = this.#model
      const owned = this.#owned(session)
      return queue.run(
        control,
        () => sequences.replace(owned, (fresh) => restoreSession(fresh, info, bytes, () => this.#port.pause())),
        owned
      )
    },
    closeSession: ({ session }, control) => {
      const { queue, sequences } = this.#model
      const owned = this.#owned(session)
      this.#sessions.delete(session)
      return queue.run(control, async () => sequences.free(owned), owned)
    },
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

  #reading(control: Control): Reading {
    const { info, batch, sequences } = this.#model
    return { info, batch, sequences, control, encode: (text, special) => this.#text.tokenize(text, special) }
  }

  async #load(request: LoadRequest, control: Control, event: (progress: LoadProgress) => void): Promise<ModelInfo> {
    const started = performance.now()
    const { core, engine, rung, notes, keep } = await loadModel(this.#port, request, control.gate, event)
    const raw = engine.info()
    const { chat_templates: templates = {}, added_tokens: added = [], special_tokens: special = {} } = raw
    const chat = new ChatRenderer(templates as Texts, added as AddedToken[], special as Texts)
    const info = makeModelInfo(raw, rung, chat.names, performance.now() - started, sourceName(request.source))
    info.notes.push(...notes)
    this.#loaded = { core, engine, info, chat, ...this.#shares(engine, info, request.maxParallel) }
    if (this.#port.stays) void keep(this.#rest(this.#loaded.queue))
    return info
  }

  #rest(queue: Queue): Rest {
    const lasts = async () => {
      await this.#port.pause()
      return !queue.busy
    }
    return { begins: () => queue.rest(), lasts }
  }

  /** What the calls of a model share. */
  #shares(engine: Engine, info: ModelInfo, maxParallel: number): Pick<Loaded, 'queue' | 'batch' | 'sequences'> {
    // One for each call that runs at the same time and two for what comes back; idle ones hold a full context twice.
    const limits = { most: maxParallel + 2, tokens: 2 * info.contextLength, blockBytes: BLOCK_TOKENS * info.kvBytesPerToken }
    const sequences = new Sequences(engine, limits)
    const batch = new Batch(
      (sessions) => sequences.step(sessions),
      () => this.#port.pause()
    )
    return { queue: new Queue(maxParallel), batch, sequences }
  }

  #owned(session: number): Sequence {
    const owned = this.#sessions.get(session)
    if (!owned) throw new QwasmError('disposed', 'The session was disposed.')
    return owned
  }

  #encode(messages: unknown, options: RenderOptions): number[] {
    const engine = this.#text
    const { marked, mark } = this.#model.chat.render(messages, options)
    return engine.tokenize(marked, true, mark)
  }

  /** The conversation, without its oldest turns where the caller allows that and they do not fit. */
  #fitting(messages: readonly Message[], options: Plain<ChatOptions>): { messages: readonly Message[]; dropped: number } {
    if (options.overflow !== 'slide' || !Array.isArray(messages)) return { messages, dropped: 0 }
    const room = promptRoom(this.#model.info.contextLength, options.maxTokens)
    return slide(messages, (fewer) => this.#encode(fewer, options).length <= room)
  }

  #generate(
    control: Control,
    ids: Int32Array,
    options: Calls['generate']['args']['options'],
    onText: (text: string) => void,
    owner: number | undefined,
    guide?: Guide
  ): Promise<Omit<GenerateResult, 'samples'>> {
    const { engine, info, queue, batch, sequences } = this.#model
    const owned = owner === undefined ? undefined : this.#owned(owner)
    const work = async () => {
      const sequence = sequences.begin(ids, owned)
      const encode = (text: string) => engine.tokenize(text, true)
      const { session } = sequence
      const prefill = (tokens: number) => sequences.withRoom(() => session.prefill(tokens))
      const run: Run = { session, prefill, defaults: info, loadMs: info.loadMs, batch, control, encode, guide }
      try {
        return await generate(run, ids, options, onText)
      } finally {
        sequences.end(sequence)
      }
    }
    return queue.run(control, work, owned)
  }
}
