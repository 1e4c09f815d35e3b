// Parameters and answers of OpenAI's API, as far as they mean something to a model of ours. Names and meanings are OpenAI's.

/** Fields that may be left out, and may be null, which means the same. */
type Loose<T> = { [K in keyof T]?: T[K] | null | undefined }

export interface ContentPart {
  type: string
  text?: string
}

export interface ChatMessageParam {
  role: string
  content?: string | readonly ContentPart[] | null
  name?: string
  reasoning_content?: string | null
  tool_calls?: readonly { id: string; type?: string; function?: { name: string; arguments: string } }[] | null
  tool_call_id?: string
}

interface SamplingParams {
  model: string
  max_tokens: number
  temperature: number
  top_p: number
  /** Answers to the same prompt: with the seeds seed, seed + 1 and so on. */
  n: number
  seed: number
  stop: string | readonly string[]
  presence_penalty: number
  frequency_penalty: number
  logit_bias: Record<string, number>
  stream: boolean
  stream_options: { include_usage?: boolean; include_obfuscation?: boolean } | null
  /** Not OpenAI's: as vLLM and others have them. */
  top_k: number
  min_p: number
  repetition_penalty: number
  /** What changes nothing here. */
  user: string
  store: boolean
  metadata: unknown
  service_tier: string
  safety_identifier: string
  prompt_cache_key: string
}

export interface ChatFunction {
  name: string
  description?: string
  parameters?: object | null
  strict?: boolean | null
}

export type ResponseFormatParam =
  | { type: 'text' | 'json_object' }
  | { type: 'json_schema'; json_schema: { name?: string; description?: string; schema?: object; strict?: boolean | null } }
  /** Not OpenAI's. */
  | { type: 'regex'; pattern: string }
  | { type: 'grammar'; grammar: string }

interface ChatOnlyParams extends SamplingParams {
  max_completion_tokens: number
  logprobs: boolean
  top_logprobs: number
  response_format: ResponseFormatParam
  tools: readonly { type: string; function?: ChatFunction }[]
  tool_choice: 'auto' | 'none' | 'required' | { type: string; function?: { name: string } }
  parallel_tool_calls: boolean
  /** 'none' asks for no thinking, everything else for thinking. */
  reasoning_effort: string
  modalities: readonly string[]
  /** Not OpenAI's: thinking on or off, and the tokens after which it is closed, as Qwen's own service has them. */
  enable_thinking: boolean
  thinking_budget: number
  /** Not OpenAI's: further variables of the chat template, as vLLM has it; enable_thinking may be among them. */
  chat_template_kwargs: Record<string, unknown>
}

export interface ChatCompletionParams extends Loose<ChatOnlyParams> {
  messages: readonly ChatMessageParam[]
}

interface CompletionOnlyParams extends SamplingParams {
  /** 0 to 20: log-probabilities with so many alternatives. */
  logprobs: number
  echo: boolean
  best_of: number
  suffix: string
}

export interface CompletionParams extends Loose<CompletionOnlyParams> {
  /** Texts or token ids; several prompts give several answers. Null, which OpenAI's types allow, is refused. */
  prompt: string | readonly string[] | readonly number[] | readonly (readonly number[])[] | null
}

export interface Usage {
  prompt_tokens: number
  completion_tokens: number
  total_tokens: number
  /** Prompt tokens that a former call had left in the cache. */
  prompt_tokens_details: { cached_tokens: number }
}

export type FinishReasonName = 'stop' | 'length' | 'tool_calls'

export interface TokenLogprobShape {
  token: string
  bytes: number[]
  logprob: number
  top_logprobs: { token: string; bytes: number[]; logprob: number }[]
}

/** Of the content's tokens. */
export interface ChoiceLogprobs {
  content: TokenLogprobShape[]
  refusal: null
}

interface Envelope<Name extends string> {
  id: string
  object: Name
  /** Seconds since 1970. */
  created: number
  model: string
  system_fingerprint: string
}

export interface ChatMessageShape {
  role: 'assistant'
  content: string | null
  refusal: null
  /** The thinking before the answer, where there was some. */
  reasoning_content?: string
  tool_calls?: { id: string; type: 'function'; function: { name: string; arguments: string } }[]
}

export interface ChatCompletion extends Envelope<'chat.completion'> {
  choices: { index: number; message: ChatMessageShape; logprobs: ChoiceLogprobs | null; finish_reason: FinishReasonName }[]
  usage: Usage
}

export interface ChatDeltaShape {
  role?: 'assistant'
  content?: string
  reasoning_content?: string
  tool_calls?: { index: number; id?: string; type?: 'function'; function: { name?: string; arguments?: string } }[]
}

export interface ChatCompletionChunk extends Envelope<'chat.completion.chunk'> {
  /** Log-probabilities come with an answer's last chunk. */
  choices: { index: number; delta: ChatDeltaShape; logprobs: ChoiceLogprobs | null; finish_reason: FinishReasonName | null }[]
  usage?: Usage | null
}

export interface CompletionLogprobs {
  tokens: string[]
  token_logprobs: number[]
  top_logprobs: Record<string, number>[]
  text_offset: number[]
}

export interface Completion extends Envelope<'text_completion'> {
  choices: { index: number; text: string; logprobs: CompletionLogprobs | null; finish_reason: 'stop' | 'length' }[]
  usage: Usage
}

export interface CompletionChunk extends Envelope<'text_completion'> {
  /** Log-probabilities come with an answer's last chunk. */
  choices: { index: number; text: string; logprobs: CompletionLogprobs | null; finish_reason: 'stop' | 'length' | null }[]
  usage?: Usage | null
}

interface EmbeddingOnlyParams {
  model: string
  /** The first so many values of each embedding. */
  dimensions: number
  /** Default 'float': an array of numbers; 'base64': the bytes of float32 numbers, little-endian. */
  encoding_format: 'float' | 'base64'
  user: string
}

export interface EmbeddingParams extends Loose<EmbeddingOnlyParams> {
  /** A text, token ids, or an array of such. */
  input: string | readonly string[] | readonly number[] | readonly (readonly number[])[]
}

export interface EmbeddingList {
  object: 'list'
  data: { object: 'embedding'; index: number; embedding: number[] | string }[]
  model: string
  usage: { prompt_tokens: number; total_tokens: number }
}

export interface ModelShape {
  id: string
  object: 'model'
  created: number
  owned_by: string
}

/** A stream of chunks; as with OpenAI's own client, `controller.abort()` and `break` end it. */
export interface ChunkStream<Chunk> extends AsyncIterable<Chunk> {
  controller: AbortController
}

export interface RequestOptions {
  signal?: AbortSignal | null | undefined
}
