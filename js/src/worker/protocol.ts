// What crosses the border between the caller's thread and the worker: calls with ids, controls, events, results.
import type { WireError } from '../errors.js'
import type { CacheMode } from '../loader/chunks.js'
import type {
  ChatDelta,
  ChatOptions,
  ChatResult,
  Embeddings,
  EmbedOptions,
  GenerateOptions,
  GenerateResult,
  LoadProgress,
  Message,
  ModelInfo,
  RankedDocument,
  RenderOptions,
  RerankOptions,
  Variant,
} from '../types.js'

/** A model on a hub, as people name it. */
export interface HubModel {
  id: string
  revision: string
  endpoint: string
}

/** A model's place, in a form that can be sent. */
export type SourceSpec = (
  | {
      kind: 'url'
      /** Ends with a slash, or with one before its '?'. */
      url: string
      /** Goes to the URL's own origin, in a header. */
      token?: string
      hub?: HubModel
      /** Why nothing may be fetched, as an error says it. */
      offline?: string
    }
  | { kind: 'folder'; path: string }
  | { kind: 'files'; files: { name: string; blob: Blob; lastModified: number }[]; place: string }
) & {
  /** A file of weights, or an index of shards, that takes the part of model.safetensors in the folder; or a GGUF file, which is the whole model. */
  weights?: string
  /** What the caller may have meant instead: a sentence for errors. */
  otherwise?: string
}

export interface LoadRequest {
  source: SourceSpec
  parts: 'model' | 'tokenizer' | 'headers'
  /** The folder of the modules; absent: they lie beside the worker's script. */
  wasmUrl?: string
  variant?: Variant
  threads: number
  maxRequests: number
  /** Calls that run as one batch. */
  maxParallel: number
  cache: CacheMode
  integrity?: Record<string, unknown> | string
  core: { dtype?: string; kv?: string; context_length?: number; choose_threads?: boolean }
}

export type Plain<T> = Omit<T, 'signal' | 'onProgress' | 'controller' | 'n'>

/** Every call: what it takes and what it gives; `events` are sent while it runs. */
export interface Calls {
  load: { args: LoadRequest; result: ModelInfo; events: LoadProgress }
  inspect: { args: { context?: number; bandwidth: number }; result: Record<string, unknown>; events: never }
  tokenize: { args: { text: string; special: boolean; addSpecialTokens: boolean }; result: number[]; events: never }
  detokenize: { args: { ids: Int32Array; skipSpecial: boolean }; result: string; events: never }
  renderChat: { args: { messages: readonly Message[]; options: RenderOptions }; result: string; events: never }
  encodeChat: { args: { messages: readonly Message[]; options: RenderOptions }; result: number[]; events: never }
  generate: {
    args: { prompt: string | Int32Array; options: Plain<GenerateOptions>; session?: number }
    result: GenerateResult
    events: string
  }
  chat: {
    args: { messages: readonly Message[]; options: Plain<ChatOptions>; session?: number }
    result: ChatResult
    events: ChatDelta
  }
  logits: { args: { ids: Int32Array; positions: number[] }; result: Float32Array; events: never }
  embed: { args: { texts: (string | Int32Array)[]; options: Plain<EmbedOptions> }; result: Embeddings; events: never }
  rerank: { args: { query: string; documents: string[]; options: Plain<RerankOptions> }; result: RankedDocument[]; events: never }
  /** A caller's own session, by a number; calls with one session run one after the other. */
  openSession: { args: Record<string, never>; result: number; events: never }
  saveSession: { args: { session: number }; result: Uint8Array<ArrayBuffer>; events: never }
  restoreSession: { args: { session: number; bytes: Uint8Array }; result: void; events: never }
  closeSession: { args: { session: number }; result: void; events: never }
  /** A GGUF file in the making, by a number; its pieces in order, none at the end. */
  openGguf: { args: { name: string }; result: { file: number; bytes: number }; events: never }
  readGguf: { args: { file: number }; result: Uint8Array<ArrayBuffer>; events: never }
  closeGguf: { args: { file: number }; result: void; events: never }
  readBandwidth: { args: Record<string, never>; result: number; events: never }
}

export type Method = keyof Calls

export type ToWorker = { kind: 'call'; id: number; method: Method; args: unknown } | { kind: 'stop' | 'abort' | 'pause' | 'resume'; id: number }

/** 'holding' comes once, without a call: the worker holds the lock that tells of its life (life.ts). */
export type FromWorker =
  | { kind: 'holding' }
  | { kind: 'event'; id: number; event: unknown }
  | { kind: 'result'; id: number; result: unknown }
  | { kind: 'error'; id: number; error: WireError }
