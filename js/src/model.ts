// Model and tokenizer as callers see them: checks of arguments, then calls to the worker that owns the engine.
import { Connection, type WorkerPort } from './connection.js'
import { abortError, QwasmError } from './errors.js'
import { saveGguf } from './gguf/save.js'
import { explainFailure } from './loader/specs.js'
import { checkIds, checkInputs, checkOptions, checkPositions, checkRanking, checkText, chooseThreads } from './options.js'
import { Generation, SessionProxy } from './session.js'
import { show } from './show.js'
import type {
  ChatOptions,
  ChatStream,
  Embeddings,
  EmbedOptions,
  GenerateOptions,
  InspectOptions,
  LoadOptions,
  Message,
  Model,
  ModelInfo,
  RankedDocument,
  RenderOptions,
  RerankOptions,
  SaveOptions,
  Session,
  TextStream,
  TokenizeOptions,
  Tokenizer,
  TokenizerOptions,
} from './types.js'
import type { LoadRequest, SourceSpec } from './worker/protocol.js'

/** What differs between a browser and Node.js; each entry file makes one. */
export interface Platform {
  hardwareThreads(): number
  startWorker(workerUrl: string | URL | undefined): WorkerPort
  wasmUrl(asked: string | URL): string
  /** A source as the worker opens it, for the parts to load of it; throws a QwasmError on what is no source here. */
  sourceSpec(source: unknown, options: LoadOptions, parts: LoadRequest['parts']): Promise<SourceSpec>
}

class TokenizerProxy implements Tokenizer {
  protected readonly connection: Connection

  constructor(connection: Connection) {
    this.connection = connection
  }

  async tokenize(text: string, options?: TokenizeOptions): Promise<number[]> {
    const { special = true, addSpecialTokens = false } = checkOptions('tokenize', options)
    return this.connection.call('tokenize', { text: checkText('tokenize', text), special, addSpecialTokens }).result
  }

  async detokenize(ids: ArrayLike<number>, options?: { skipSpecial?: boolean }): Promise<string> {
    const { skipSpecial = false } = checkOptions('detokenize', options)
    return this.connection.call('detokenize', { ids: checkIds('detokenize', ids), skipSpecial }).result
  }

  async renderChat(messages: readonly Message[], options?: RenderOptions): Promise<string> {
    return this.connection.call('renderChat', { messages, options: checkOptions('renderChat', options) }).result
  }

  async encodeChat(messages: readonly Message[], options?: RenderOptions): Promise<number[]> {
    return this.connection.call('encodeChat', { messages, options: checkOptions('encodeChat', options) }).result
  }

  async dispose(): Promise<void> {
    await this.connection.close(new QwasmError('disposed', 'The model was disposed.'))
  }
}

class ModelProxy extends TokenizerProxy implements Model {
  readonly info: ModelInfo
  readonly #shared: Generation

  constructor(connection: Connection, info: ModelInfo) {
    super(connection)
    this.info = info
    this.#shared = new Generation(connection)
  }

  generate(prompt: string | ArrayLike<number>, options?: GenerateOptions): TextStream {
    return this.#shared.generate(prompt, options)
  }

  chat(messages: readonly Message[], options?: ChatOptions): ChatStream {
    return this.#shared.chat(messages, options)
  }

  async tokenCount(messages: readonly Message[], options?: RenderOptions): Promise<number> {
    const ids = await this.connection.call('encodeChat', { messages, options: checkOptions('tokenCount', options) }).result
    return ids.length
  }

  async session(): Promise<Session> {
    return new SessionProxy(this.connection, await this.connection.call('openSession', {}).result)
  }

  async logits(
    ids: ArrayLike<number>,
    options?: { positions?: 'all' | 'last' | readonly number[]; signal?: AbortSignal }
  ): Promise<Float32Array> {
    const { positions = 'all', signal } = checkOptions('logits', options)
    const checked = checkIds('logits', ids)
    const rows = checkPositions(positions, checked.length)
    return this.connection.call('logits', { ids: checked, positions: rows }, { signal }).result
  }

  async embed(texts: readonly (string | ArrayLike<number>)[], options?: EmbedOptions): Promise<Embeddings> {
    const { signal, ...plain } = checkOptions('embed', options)
    return this.connection.call('embed', { texts: checkInputs(texts), options: plain }, { signal }).result
  }

  async rerank(query: string, documents: readonly string[], options?: RerankOptions): Promise<RankedDocument[]> {
    const { signal, ...plain } = checkOptions('rerank', options)
    return this.connection.call('rerank', { ...checkRanking(query, documents), options: plain }, { signal }).result
  }

  async readBandwidth(): Promise<number> {
    return this.connection.call('readBandwidth', {}).result
  }

  async saveGguf(sink: WritableStream<Uint8Array>, options?: SaveOptions): Promise<number> {
    return saveGguf(this.connection, this.info, sink, options)
  }
}

type AnyOptions = LoadOptions & InspectOptions

/** Starts a worker and loads `parts` of a model in it; a load that fails or is aborted ends the worker. */
async function load(platform: Platform, source: unknown, parts: LoadRequest['parts'], options: AnyOptions) {
  if (source === undefined || source === null) {
    const expected = "a hub's id, a URL, a path or files"
    throw new QwasmError('invalid_argument', `The model's source must be ${expected}, not ${show(source)}.`)
  }
  const { dtype, kv, contextLength, variant, maxRequests = 4, maxParallel = 4, cache = 'default', integrity } = options
  const { controller, signal } = options
  const request: LoadRequest = {
    source: await platform.sourceSpec(source, options, parts),
    parts,
    ...(options.wasmUrl !== undefined && { wasmUrl: platform.wasmUrl(options.wasmUrl) }),
    threads: parts === 'model' ? chooseThreads(options.threads, platform.hardwareThreads()) : 1,
    maxRequests,
    maxParallel,
    cache,
    ...(integrity !== undefined && { integrity }),
    core: {
      ...(dtype && { dtype }),
      ...(kv && { kv }),
      ...(contextLength && { context_length: contextLength }),
      ...(parts === 'model' && options.threads === undefined && { choose_threads: true }),
    },
    ...(parts === 'model' ? variant && { variant } : { variant: 'simd-single' }),
  }
  for (const given of [signal, controller?.signal]) if (given?.aborted) throw abortError(given)
  const connection = new Connection(platform.startWorker(options.workerUrl))
  try {
    const { result } = connection.call('load', request, { signal, controller, onEvent: options.onProgress })
    return { connection, info: await result }
  } catch (error) {
    await connection.close(new QwasmError('disposed', 'The load failed.'))
    throw await explainFailure(error, request.source)
  }
}

/** The package's functions on one platform. */
export function makeApi(platform: Platform) {
  return {
    async loadModel(source: unknown, options?: LoadOptions): Promise<Model> {
      const { connection, info } = await load(platform, source, 'model', checkOptions('loadModel', options))
      return new ModelProxy(connection, info)
    },

    async loadTokenizer(source: unknown, options?: TokenizerOptions): Promise<Tokenizer> {
      const { connection } = await load(platform, source, 'tokenizer', checkOptions('loadTokenizer', options))
      return new TokenizerProxy(connection)
    },

    async inspect(source: unknown, options?: InspectOptions): Promise<Record<string, unknown>> {
      const checked = checkOptions('inspect', options)
      const { connection } = await load(platform, source, 'headers', checked)
      try {
        const { context, bandwidth = 20 } = checked
        return await connection.call('inspect', { bandwidth, ...(context && { context }) }, { signal: checked.signal }).result
      } finally {
        await connection.close(new QwasmError('disposed', 'The inspection is over.'))
      }
    },
  }
}
