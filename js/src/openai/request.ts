// OpenAI's requests in our options. Knows no model: the same request always gives the same job.
import { show } from '../show.js'
import type { ChatOptions, GenerateOptions, Message, ResponseFormat, TextPart, Tool, ToolCall } from '../types.js'
import { invalid } from './errors.js'
import { CHAT, COMPLETION, readParameters } from './parameters.js'
import type { ChatCompletionParams, ChatMessageParam, CompletionParams } from './shapes.js'

/** What a request comes to: calls of the model, `samples` for each prompt, that differ in their seeds alone. */
export interface Job<Options> {
  /** The model that the request names. */
  model: string | undefined
  options: Options
  samples: number
  stream: boolean
  includeUsage: boolean
}

export interface ChatJob extends Job<ChatOptions> {
  messages: Message[]
  /** Whether the first of several tool calls is all that is wanted. */
  oneCall: boolean
}

export interface CompletionJob extends Job<GenerateOptions> {
  prompts: (string | number[])[]
}

type Read<Params> = { [K in keyof Params]: Exclude<Params[K], null> }
type Sampling = Read<Omit<CompletionParams, 'prompt' | 'logprobs'>>

/** OpenAI's maximum where a request for a completion of a text gives none. */
const COMPLETION_TOKENS = 16

export function chatJob(given: unknown): ChatJob {
  const params = readParameters<Read<ChatCompletionParams>>(given, CHAT)
  if (params.messages === undefined) throw invalid('messages', 'The parameter messages is missing.', 'missing_required_parameter')
  const { max_tokens, max_completion_tokens = max_tokens, logprobs = false, top_logprobs } = params
  if (max_tokens !== undefined && max_tokens !== max_completion_tokens) {
    throw invalid('max_tokens', 'max_tokens and max_completion_tokens exclude each other.')
  }
  if (top_logprobs !== undefined && !logprobs) throw invalid('top_logprobs', 'top_logprobs needs logprobs: true.')
  return {
    ...common(params),
    messages: params.messages.map(message),
    oneCall: params.parallel_tool_calls === false,
    options: {
      ...samplingOptions(params),
      ...(max_completion_tokens !== undefined && { maxTokens: max_completion_tokens }),
      ...(logprobs && { logprobs: top_logprobs ?? 0 }),
      ...responseFormat(params.response_format),
      ...toolOptions(params),
      ...thinkingOptions(params),
    },
  }
}

export function completionJob(given: unknown): CompletionJob {
  const params = readParameters<Read<CompletionParams>>(given, COMPLETION)
  const { n = 1, best_of = n, logprobs, max_tokens = COMPLETION_TOKENS } = params
  if (best_of !== n) throw invalid('best_of', `The parameter best_of must be n, which is ${n}, not ${show(best_of)}.`)
  return {
    ...common(params),
    prompts: textsOf('prompt', params.prompt),
    options: { ...samplingOptions(params), maxTokens: max_tokens, ...(logprobs !== undefined && { logprobs }) },
  }
}

/** The options of the call for sample `index` of a prompt. */
export function sampleOptions<Options extends GenerateOptions>({ options, samples }: Job<Options>, index: number): Options {
  return options.seed === undefined ? options : { ...options, seed: options.seed + (index % samples) }
}

function common({ model, n = 1, stream = false, stream_options }: Sampling) {
  if (stream_options !== undefined && !stream) throw invalid('stream_options', 'stream_options needs stream: true.')
  return { model, samples: n, stream, includeUsage: stream_options?.include_usage === true }
}

/** Names that differ in their spelling alone. */
const SAME_MEANING = {
  temperature: 'temperature',
  top_p: 'topP',
  top_k: 'topK',
  min_p: 'minP',
  repetition_penalty: 'repetitionPenalty',
  presence_penalty: 'presencePenalty',
  frequency_penalty: 'frequencyPenalty',
  seed: 'seed',
  stop: 'stop',
} as const

function samplingOptions(params: Sampling): GenerateOptions {
  const options: Record<string, unknown> = {}
  for (const [theirs, ours] of Object.entries(SAME_MEANING)) {
    const value = params[theirs as keyof typeof SAME_MEANING]
    if (value !== undefined) options[ours] = value
  }
  const bias = Object.entries(params.logit_bias ?? {})
  if (bias.length > 0) options['logitBias'] = Object.fromEntries(bias)
  return options
}

function thinkingOptions(params: Read<ChatCompletionParams>): ChatOptions {
  const { enable_thinking: inTemplate, ...templateVariables } = params.chat_template_kwargs ?? {}
  if (inTemplate !== undefined && typeof inTemplate !== 'boolean') {
    throw invalid('chat_template_kwargs', `chat_template_kwargs.enable_thinking must be true or false, not ${show(inTemplate)}.`)
  }
  const { reasoning_effort, thinking_budget } = params
  const thinking = params.enable_thinking ?? inTemplate ?? (reasoning_effort === undefined ? undefined : reasoning_effort !== 'none')
  return {
    ...(thinking !== undefined && { thinking }),
    ...(thinking_budget !== undefined && { thinkingBudget: thinking_budget }),
    ...(Object.keys(templateVariables).length > 0 && { templateVariables }),
  }
}

function responseFormat(given: Read<ChatCompletionParams>['response_format']): { responseFormat?: ResponseFormat } {
  if (given === undefined || given.type === 'text') return {}
  if (given.type === 'json_object') return { responseFormat: { type: 'json_object' } }
  if (given.type === 'regex' || given.type === 'grammar') return { responseFormat: given }
  if (given.type !== 'json_schema') {
    const known = "'text', 'json_object', 'json_schema', 'regex' or 'grammar'"
    throw invalid('response_format', `response_format.type must be ${known}, not ${show((given as { type?: unknown }).type)}.`)
  }
  const schema: unknown = given.json_schema?.schema
  if (typeof schema !== 'object' || schema === null) {
    throw invalid('response_format', `response_format.json_schema.schema must be an object, not ${show(schema)}.`)
  }
  return { responseFormat: { type: 'json_schema', schema } }
}

function toolOptions({ tools = [], tool_choice }: Read<ChatCompletionParams>): ChatOptions {
  const names = tools.map((tool, i) => toolName(tool, `tools[${i}]`))
  if (names.length === 0) {
    if (tool_choice === undefined || tool_choice === 'none' || tool_choice === 'auto') return {}
    throw invalid('tool_choice', 'tool_choice asks for a call, and there are no tools.')
  }
  const given = { tools: tools as readonly unknown[] as readonly Tool[] }
  if (tool_choice === undefined) return given
  if (tool_choice === 'auto' || tool_choice === 'none' || tool_choice === 'required') return { ...given, toolChoice: tool_choice }
  const name = typeof tool_choice === 'object' && tool_choice.type === 'function' ? tool_choice.function?.name : undefined
  if (name === undefined || !names.includes(name)) {
    const known = `'auto', 'none', 'required' or a function of ${names.join(', ')}`
    throw invalid('tool_choice', `tool_choice must be ${known}, not ${show(name ?? tool_choice)}.`)
  }
  return { ...given, toolChoice: { name } }
}

function toolName(tool: { type?: unknown; function?: { name?: unknown } } | null, at: string): string {
  if (tool?.type !== 'function') throw invalid('tools', `${at}.type must be 'function', not ${show(tool?.type)}.`)
  const name = tool.function?.name
  if (typeof name !== 'string' || name === '') throw invalid('tools', `${at}.function.name must be a string, not ${show(name)}.`)
  return name
}

const ROLES: Readonly<Record<string, Message['role']>> = {
  system: 'system',
  developer: 'system',
  user: 'user',
  assistant: 'assistant',
  tool: 'tool',
}

/** Only what means something to a template goes on; whether it is well-formed is checked where it is rendered. */
function message(given: ChatMessageParam, i: number): Message {
  const at = `messages[${i}]`
  if (typeof given !== 'object' || given === null) throw invalid('messages', `${at} must be an object, not ${show(given)}.`)
  const role = Object.hasOwn(ROLES, given.role) ? ROLES[given.role] : undefined
  if (!role) throw invalid('messages', `${at}.role must be one of ${Object.keys(ROLES).join(', ')}, not ${show(given.role)}.`)
  const { content, name, reasoning_content, tool_calls, tool_call_id } = given
  if (Array.isArray(content)) checkParts(content, `${at}.content`)
  return {
    role,
    ...(content !== undefined && { content: content as string | TextPart[] | null }),
    ...(name !== undefined && { name }),
    ...(typeof reasoning_content === 'string' && { reasoning_content }),
    ...(tool_calls && { tool_calls: tool_calls as ToolCall[] }),
    ...(tool_call_id !== undefined && { tool_call_id }),
  }
}

function checkParts(parts: readonly { type?: unknown }[], at: string): void {
  parts.forEach((part, i) => {
    if (part?.type !== 'text') throw invalid('messages', `${at}[${i}] is of type ${show(part?.type)}; the model reads text only.`)
  })
}

/** Texts or token ids, of a parameter that holds one or several of them. */
export function textsOf(name: string, given: unknown): (string | number[])[] {
  const isIds = (value: unknown): value is number[] =>
    Array.isArray(value) && value.length > 0 && value.every((id) => Number.isSafeInteger(id))
  if (typeof given === 'string' || isIds(given)) return [given]
  const several = Array.isArray(given) && given.length > 0 && given.every((prompt) => typeof prompt === 'string' || isIds(prompt))
  if (several) return given as (string | number[])[]
  throw invalid(name, `The parameter ${name} must be a text, token ids, or an array of such, not ${show(given)}.`)
}
