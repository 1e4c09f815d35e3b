// The public types of the package: what goes into a model and what comes out of it.
import type { LoadController } from './load-controller.js'
import type { Variant } from './variants.js'

/**
 * Where a model lies: a hub's id ('Qwen/Qwen3-0.6B') or a GGUF file there ('owner/name/file.gguf'), the URL of a folder, of a file of weights in it or
 * of a GGUF file (of several parts any, and all lie beside it), the same as a local path
 * (Node.js), or the files (a file input, a drop) or the handle of a folder. In browsers 'owner/name' is a hub's id, './owner/name' an
 * address; under Node.js a local folder of that name goes before the hub.
 */
export type ModelSource = string | URL | File | readonly File[] | FileList | FileSystemDirectoryHandle

export type { Variant }

export interface LoadProgress {
  /**
   * 'wait': another tab or process is loading the same model, and this load goes on from what it leaves in the cache; 'headers': config,
   * tokenizer and tensor headers; then weights, by where the latest bytes came from: 'download': a network, 'verify': the cache, which is
   * checked, 'prepare': local files, which are made ready; 'ready': all is there.
   */
  phase: 'wait' | 'headers' | 'download' | 'verify' | 'prepare' | 'ready'
  /** The file that the latest bytes belong to, and how much of its weights arrived. */
  file: string
  fileLoaded: number
  fileTotal: number
  /** Bytes of weights that arrived, and in all (0 until the headers were read); never more than all. */
  loaded: number
  total: number
  /** Bytes per second of late, and the seconds left at that rate; null until they can be told. */
  rate: number | null
  secondsLeft: number | null
}

export interface HubOptions {
  /** Branch, tag or commit of a model on a hub; default 'main'. */
  revision?: string
  /** A key to private and gated models. It is sent to the endpoint and nowhere else. Default under Node.js: HF_TOKEN. */
  token?: string
  /** The hub that ids belong to; default https://huggingface.co, under Node.js HF_ENDPOINT where that is set. */
  endpoint?: string | URL
}

interface SourceOptions extends HubOptions {
  onProgress?: (progress: LoadProgress) => void
  signal?: AbortSignal
  /** The folder that holds the qwasm-*.mjs and .wasm files, where they do not lie beside the package. */
  wasmUrl?: string | URL
  /** The worker script, where it does not lie beside the package. */
  workerUrl?: string | URL
  /** Byte ranges that are fetched at the same time (1 to 16, default 4). */
  maxRequests?: number
  /**
   * How downloads are kept (in the browser's private file system, or under Node.js in the user's cache folder), in the words of fetch():
   * 'default' asks the source whether what is kept is still so; 'force-cache' does not ask; 'only-if-cached' uses no network at all;
   * 'reload' fetches everything anew; 'no-store' neither reads nor keeps. Local files are never copied there.
   */
  cache?: 'default' | 'no-store' | 'reload' | 'force-cache' | 'only-if-cached'
  /**
   * Pins the files: a manifest made by `qwasm manifest`, or 'sha256-…', the hash it prints, of a manifest that lies beside the files. A byte
   * that differs is refused with the code 'integrity' before it is used.
   */
  integrity?: Record<string, unknown> | string
  /** Pauses, resumes or aborts the load. */
  controller?: LoadController
}

export interface LoadOptions extends SourceOptions {
  /**
   * 'exact': weights as stored, float32 arithmetic. 'q8' and 'q4': 8.5 and 4.5 bits a weight, made while loading, multiplied in whole
   * numbers: several times faster and smaller, and near the exact answers rather than equal to them. 'stored': the values that a
   * quantized file holds, multiplied as fast; of a file of floats the same as 'exact'. 'auto': q8 for up to 1 billion parameters where
   * that fits the device, else q4.
   */
  dtype?: 'auto' | 'exact' | 'q8' | 'q4' | 'stored'
  /** Tokens of prompt and answer together; default min(max_position_embeddings, 4096). */
  contextLength?: number
  /**
   * How keys and values of past tokens are kept: 'f16' and 'q8' take a half and about a quarter of the bytes of 'f32'. 'auto' is 'f16',
   * and 'f32' where `dtype` is 'exact', or 'stored' for a file of floats.
   */
  kv?: 'auto' | 'f32' | 'f16' | 'q8'
  /**
   * More than the pool allows is clamped, never an error. Default: half of the machine's threads, at least 2 where it has 2; and of a large
   * model fewer where a short measurement after loading shows that they decode as fast.
   */
  threads?: number
  /** Forces a module; an error that says why where it cannot run. Default: the best that runs here. */
  variant?: Variant
  /**
   * Calls that run at the same time (1 to 16, default 4): as one batch, which reads the weights once a step for all of them. Each gives what it gives
   * alone. Further calls wait in the order of asking.
   */
  maxParallel?: number
}

export type TokenizerOptions = SourceOptions

/** A model in the cache. */
export interface CachedModel {
  /** Its name inside the cache. */
  id: string
  /** The address that it came from. */
  source: string
  /** Its id, where it came from a hub. */
  hub: string | null
  /** All that it takes: downloads and prepared weights. */
  bytes: number
  /** Whether its download was finished. */
  complete: boolean
  /** The dtypes whose weights are kept ready for loading. */
  prepared: string[]
  /** Milliseconds since 1970. */
  lastUsed: number
}

export interface CacheUsage {
  models: number
  bytes: number
  /** Bytes that may still be kept, where that is known. */
  available: number | null
}

/** The models that were downloaded and kept. */
export interface ModelCaches {
  /** The last used first. */
  list(): Promise<CachedModel[]>
  /** Removes a model, by its address, hub's id or id here, or all; returns the bytes that this frees. A model that is being loaded stays, with an error. */
  remove(source?: string | URL): Promise<number>
  usage(): Promise<CacheUsage>
}

export interface InspectOptions extends SourceOptions {
  /** Tokens at which operations and memory are counted; default: the model's own context, at most 4096. */
  context?: number
  /** Gigabytes per second that memory delivers, for the lower bound of decode time; default 20. */
  bandwidth?: number
}

export interface ModelInfo {
  /** The place it was loaded from, without what follows a URL's '?'. */
  source: string
  architecture: string
  modelType: string
  parameters: number
  layers: number
  hiddenSize: number
  vocabSize: number
  maxPositionEmbeddings: number
  contextLength: number
  dtype: string
  kv: string
  storedDtypes: string[]
  /** Bytes of weights in memory. */
  weightBytes: number
  kvBytesPerToken: number
  keyValueHeads: number
  /** A word that differs where a session saved with one model is of no use to another. */
  identity: string
  /** The rung it runs on: module, threads, and what the higher ones lack here. */
  variant: Variant
  threads: number
  /** The kernels that the module chose: those of relaxed or of plain SIMD. */
  kernels: 'relaxed' | 'simd'
  why: string
  /** Sentences a person should see, such as a context beyond max_position_embeddings. */
  notes: string[]
  /** Ids that end an answer, in their files' order. */
  eosTokenIds: number[]
  /** generation_config.json as in the file. */
  generationConfig: Record<string, unknown> | null
  hasTokenizer: boolean
  addedTokens: AddedToken[]
  /** Texts of tokens by the names that templates know, such as eos_token, from tokenizer_config.json. */
  specialTokens: Record<string, string>
  /** What the tokenizer puts before and behind a whole text, such as Llama 3's <|begin_of_text|>; mostly nothing. */
  beginIds: number[]
  endIds: number[]
  /** Count of ids that have a token; vocabSize may be larger. */
  knownTokens: number
  /** Names of the chat templates; 'default' is the ordinary one. */
  chatTemplates: string[]
  loadMs: number
}

export interface AddedToken {
  id: number
  content: string
  special: boolean
}

export interface TextPart {
  type: 'text'
  text: string
}

export interface ToolCall {
  id?: string
  type?: 'function'
  /** `arguments`: an object, or its JSON text. */
  function: { name: string; arguments: Record<string, unknown> | string }
}

export interface Message {
  role: 'system' | 'user' | 'assistant' | 'tool'
  /** Text or text parts; may be null or absent in an assistant's message. */
  content?: string | readonly TextPart[] | null
  /** Thinking of an assistant's message, where it is kept apart from the content. */
  reasoning_content?: string | null
  tool_calls?: readonly ToolCall[] | null
  tool_call_id?: string
  name?: string
}

/** A tool as chat templates know it: { type: 'function', function: { name, description, parameters } }. */
export type Tool = Record<string, unknown>

export interface TemplateOptions {
  tools?: readonly Tool[]
  /** true or false is handed to the template as enable_thinking; unset hands over nothing. */
  thinking?: boolean
  /** Further variables of the template. */
  templateVariables?: Record<string, unknown>
}

export interface RenderOptions extends TemplateOptions {
  /** Ends the prompt where the assistant's answer begins; default true. */
  addGenerationPrompt?: boolean
}

/** Which tools an answer may call: 'none' shows the model no tools; with 'required' or a name the answer is a call. */
export type ToolChoice = 'auto' | 'none' | 'required' | { name: string }

/**
 * json_object: any object. json_schema: JSON Schema 2020-12, of which README lists the supported keywords; members come in the schema's order, and
 * only those that it names unless it has additionalProperties. regex: a text that the ECMAScript expression matches as a whole. grammar: GBNF,
 * llama.cpp's notation. JSON comes on one line, with a space behind each comma and colon.
 */
export type ResponseFormat =
  | { type: 'text' }
  | { type: 'json_object' }
  | { type: 'json_schema'; schema: object | boolean }
  | { type: 'regex'; pattern: string }
  | { type: 'grammar'; grammar: string }

/**
 * Defaults come from the model's generation_config.json where its do_sample is true; else the choice is greedy. What changes the choice acts in
 * this order: logitBias, repetitionPenalty, presencePenalty and frequencyPenalty, temperature, topK, topP, minP.
 */
export interface GenerateOptions {
  /** Tokens to generate at most; default: to the end of the context. */
  maxTokens?: number
  /** 0 is greedy: always the likeliest token. */
  temperature?: number
  /** Keeps the K likeliest tokens; 0 is off. */
  topK?: number
  /** Keeps the likeliest tokens that add up to P; 1 is off. */
  topP?: number
  /** Drops tokens less likely than this share of the likeliest; 0 is off. */
  minP?: number
  /** Above 1 makes tokens that occurred less likely; 1 is off. */
  repetitionPenalty?: number
  /** From -2 to 2: subtracted from the logits of tokens that were generated; the prompt's do not count. 0 is off. */
  presencePenalty?: number
  /** The same, times how often a token was generated. */
  frequencyPenalty?: number
  /** What is added to the logits of ids, from -100 to 100. */
  logitBias?: Record<number, number>
  /** Tells log-probabilities in the result, with that many of the likeliest tokens (0 to 20) for each one. */
  logprobs?: number
  /** A whole number of at least 0; the same seed gives the same tokens. Default: a random one, told in the result. */
  seed?: number
  /**
   * Answers to give, 1 to 128, with the seeds `seed`, `seed` + 1 and so on: they run as one batch and share the prompt. The stream is that of the first
   * one; the result is the first one's and has all of them in `samples`. Default 1.
   */
  n?: number
  /** Text at which the answer ends; it is not part of the answer. */
  stop?: string | readonly string[]
  /** Goes on after end tokens; but one that ends the text of a responseFormat ends the answer. */
  ignoreEos?: boolean
  /** Binds the answer's text, in a chat its content after thinking. What is not supported of it is an error that names it. */
  responseFormat?: ResponseFormat
  signal?: AbortSignal
}

export interface ChatOptions extends GenerateOptions, TemplateOptions {
  /**
   * What happens to a conversation that is too long for the context: 'error', the default, or 'slide': the oldest turns are left out, whole, until the
   * prompt fits and leaves room for the answer (`maxTokens`, or a quarter of the context; half of it at the most). System messages in front and the
   * last user message with what follows it always stay.
   */
  overflow?: 'error' | 'slide'
  /** Tokens of thinking after which the block is closed and the answer begins; 0 closes it at once. Default: no bound. */
  thinkingBudget?: number
  /** Default 'auto': the model decides whether to call a tool. */
  toolChoice?: ToolChoice
}

/** 'tool_calls': the answer ended by itself and calls tools. */
export type FinishReason = 'stop' | 'length' | 'abort' | 'tool_calls'

export interface Timings {
  loadMs: number
  /** Prompt tokens that were run, and those that a former call had left in the cache. */
  prefillTokens: number
  cachedTokens: number
  prefillMs: number
  decodeTokens: number
  decodeMs: number
}

/**
 * A token, and the natural logarithm of its probability: that of the model itself, before bias, penalties, temperature and filters. `bytes`
 * are what it stands for, which need not be whole characters; `token` shows them as text.
 */
export interface Logprob {
  id: number
  token: string
  bytes: number[]
  logprob: number
}

/** The token that was chosen, and the likeliest ones: falling, of equals the lower id first. */
export interface TokenLogprob extends Logprob {
  top: Logprob[]
}

export interface GenerateResult {
  /** The answer's text, without end token and stop text. */
  text: string
  /** The generated ids, an end token included. */
  ids: number[]
  promptIds: number[]
  finishReason: FinishReason
  /** All answers, this one first, where `n` asked for more than one. */
  samples?: GenerateResult[]
  /** One for each of `ids`, where `logprobs` asked for them. */
  logprobs?: TokenLogprob[]
  seed: number
  timings: Timings
}

export interface ChatResult extends GenerateResult {
  /** `text` taken apart: the answer, and the thinking before it ('' where there is none). */
  content: string
  reasoning: string
  samples?: ChatResult[]
  /** Messages that `overflow: 'slide'` left out. */
  droppedMessages: number
  /** The calls of the answer, in order; they go back as an assistant message's tool_calls. Their text is not in `content`. */
  toolCalls: ParsedToolCall[]
  /** What a person should know of this answer: a call that is no valid one, and so stays in `content`. */
  warnings: string[]
}

/** A call that the model made. */
export interface ParsedToolCall extends ToolCall {
  id: string
  type: 'function'
  /** `arguments`: JSON text of an object, as the model wrote it. */
  function: { name: string; arguments: string }
}

/** A part of a call: its name, and then its arguments, whose pieces make up JSON text. */
export interface ToolCallDelta {
  /** Its place among the answer's calls. */
  index: number
  id: string
  name?: string
  arguments?: string
}

/** A piece of a chat answer: one of the fields is there. A call comes once it is complete and valid, so never half of one. */
export interface ChatDelta {
  content?: string
  reasoning?: string
  toolCalls?: ToolCallDelta[]
}

/** A running generation. It runs whether or not somebody iterates; pieces wait for the iterator. */
export interface Stream<Piece, Result> extends AsyncIterable<Piece> {
  /** Everything at the end. Rejects with the error that ended the generation. */
  result(): Promise<Result>
  /** Ends the generation with what there is and finishReason 'abort', as `break` in a loop over the stream does. */
  stop(): void
}

export type TextStream = Stream<string, GenerateResult>
export type ChatStream = Stream<ChatDelta, ChatResult>

export interface TokenizeOptions {
  /** Control tokens in the text count as such, as Hugging Face does; default true. */
  special?: boolean
  /**
   * Adds what the tokenizer puts around a whole text, such as Llama 3's <|begin_of_text|>, unless it stands there already; Qwen's has nothing to add.
   * Default false: pieces of a text and chat templates, which bring their own, want nothing added.
   */
  addSpecialTokens?: boolean
}

export interface Tokenizer {
  /** Ids of a text. */
  tokenize(text: string, options?: TokenizeOptions): Promise<number[]>
  /** Text of ids. `skipSpecial` leaves out control tokens; default false. */
  detokenize(ids: ArrayLike<number>, options?: { skipSpecial?: boolean }): Promise<string>
  /** The prompt's text, as the chat template gives it. */
  renderChat(messages: readonly Message[], options?: RenderOptions): Promise<string>
  /** The prompt's ids, as `chat` feeds them to the model: control tokens that people typed are plain text. */
  encodeChat(messages: readonly Message[], options?: RenderOptions): Promise<number[]>
  /** Frees everything. Calls that wait are rejected with the code 'disposed'. */
  dispose(): Promise<void>
}

/** What answers: a model, or a session of one. */
interface Generator {
  /**
   * Goes on from a text, which becomes what transformers makes of it (control tokens in it count as such, and what the tokenizer puts around
   * texts is added: `addSpecialTokens` of `tokenize`), or from ids as they are.
   */
  generate(prompt: string | ArrayLike<number>, options?: GenerateOptions): TextStream
  /** Answers a conversation. */
  chat(messages: readonly Message[], options?: ChatOptions): ChatStream
}

/**
 * A sequence of its own, whose keys and values stay until it is disposed: a prompt runs only from where it differs from what the session holds. Its
 * calls run one after the other, beside those of the model and of other sessions.
 */
export interface Session extends Generator {
  /** The sequence as bytes, which a session of the same model restores, also in another process or browser. */
  save(): Promise<Uint8Array<ArrayBuffer>>
  /** Takes the place of what the session holds. A session of another model is refused with both names; a failure leaves the session as it was. */
  restore(bytes: Uint8Array): Promise<void>
  dispose(): Promise<void>
}

export interface EmbedOptions {
  /** The first so many values of the hidden state, for models that are trained for that (Matryoshka); default: all. */
  dimensions?: number
  /** Whether an embedding's length is made 1, so that the product of two of them is their cosine; default true. */
  normalize?: boolean
  /** The task, for texts that are queries: they become 'Instruct: …\nQuery:…', as Qwen3-Embedding expects. Documents have none. */
  instruction?: string
  signal?: AbortSignal
}

export interface Embeddings {
  /** One for each text, in order. */
  embeddings: Float32Array[]
  /** Of all texts together. */
  tokens: number
  /** How many of them were known already: from the text before, or from an earlier call. */
  cachedTokens: number
}

export interface RerankOptions {
  /** What a document is judged by; default: 'Given a web search query, retrieve relevant passages that answer the query'. */
  instruction?: string
  signal?: AbortSignal
}

export interface RankedDocument {
  /** Its place in the list that was given. */
  index: number
  /** The model's probability of 'yes', against 'no'. */
  score: number
}

export interface SaveProgress {
  /** Bytes on their way into the file, and in all (0 until that is known). */
  written: number
  total: number
}

export interface SaveOptions {
  /** What the file calls the model; default: the last part of where it came from. */
  name?: string
  onProgress?: (progress: SaveProgress) => void
  signal?: AbortSignal
}

export interface Model extends Tokenizer, Generator {
  readonly info: ModelInfo
  /** Tokens of a conversation's prompt, as `chat` feeds it to the model. */
  tokenCount(messages: readonly Message[], options?: RenderOptions): Promise<number>
  /** A sequence that no other call takes over; without one, calls share a few, and each takes the one that it has most in common with. */
  session(): Promise<Session>
  /** Logits after each token, or after the last, or at the given positions: rows of vocabSize, one after the other. */
  logits(
    ids: ArrayLike<number>,
    options?: { positions?: 'all' | 'last' | readonly number[]; signal?: AbortSignal }
  ): Promise<Float32Array>
  /**
   * Embeddings of texts: the hidden state of the last token behind the final norm. A text has around it what its tokenizer's post-processor adds;
   * control tokens in it are plain text. Token ids are taken as they are.
   */
  embed(texts: readonly (string | ArrayLike<number>)[], options?: EmbedOptions): Promise<Embeddings>
  /** Documents by how well they answer a query, the best first, as Qwen3-Reranker judges them. Control tokens in them are plain text. */
  rerank(query: string, documents: readonly string[], options?: RerankOptions): Promise<RankedDocument[]>
  /**
   * Bytes per second at which the model's threads together read its weights, which takes as long as a few tokens. A generated token reads
   * the weights once, so this says how far decoding is from what memory allows.
   */
  readBandwidth(): Promise<number>
  /**
   * Writes the model, with tokenizer and chat template, as a GGUF file, which llama.cpp and others read, and gives its bytes: weights in q8 as Q8_0, in q4
   * as Q4_0, with the very values that are in memory; those of an exact model as F16. `sink` takes pieces of about a MiB, is closed at the end, and
   * aborted where that fails: such as what a file handle's createWritable() gives, or Writable.toWeb() under Node.js.
   */
  saveGguf(sink: WritableStream<Uint8Array>, options?: SaveOptions): Promise<number>
}
