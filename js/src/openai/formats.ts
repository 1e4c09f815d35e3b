// Our results and pieces in OpenAI's shapes. Knows no model: the same pieces always give the same chunks.
import type { ChatDelta, ChatResult, FinishReason, GenerateResult, ToolCall } from '../types.js'
import { chatLogprobs, completionLogprobs } from './logprobs.js'
import type { ChatJob, CompletionJob } from './request.js'
import type {
  ChatCompletion,
  ChatCompletionChunk,
  ChatDeltaShape,
  ChatMessageShape,
  Completion,
  CompletionChunk,
  FinishReasonName,
  Usage,
} from './shapes.js'

declare const QWASM_VERSION: string

/** How the answers of one request are written, which all bear the same id. */
export interface Format<Piece, Result, Chunk, Whole> {
  /** Before a choice's first piece. */
  opening(index: number): Chunk[]
  piece(index: number, piece: Piece): Chunk
  closing(index: number, result: Result): Chunk
  /** The last chunk, for those who asked for it. */
  usage(usage: Usage): Chunk
  whole(results: readonly Result[], usage: Usage): Whole
}

/** `samples`: results that share a prompt follow each other; a prompt counts once. */
export function usageOf(results: readonly GenerateResult[], samples: number): Usage {
  const sum = (counts: number[]) => counts.reduce((total, count) => total + count, 0)
  const firsts = results.filter((_, i) => i % samples === 0)
  const prompt_tokens = sum(firsts.map(({ promptIds }) => promptIds.length))
  const completion_tokens = sum(results.map(({ ids }) => ids.length))
  const cached_tokens = sum(firsts.map(({ timings }) => timings.cachedTokens))
  return { prompt_tokens, completion_tokens, total_tokens: prompt_tokens + completion_tokens, prompt_tokens_details: { cached_tokens } }
}

function envelope<Name extends string>(prefix: string, object: Name, model: string) {
  const random = Array.from(crypto.getRandomValues(new Uint8Array(12)), (byte) => byte.toString(16).padStart(2, '0')).join('')
  return { id: `${prefix}-${random}`, object, created: Math.floor(Date.now() / 1000), model, system_fingerprint: `qwasm-${QWASM_VERSION}` }
}

const finishReason = (reason: FinishReason): FinishReasonName => (reason === 'abort' ? 'stop' : reason)

/** `model`: its name; `oneCall`: leaves out all tool calls but the first. */
export function chatFormat(
  model: string,
  { includeUsage, oneCall }: Pick<ChatJob, 'includeUsage' | 'oneCall'>
): Format<ChatDelta, ChatResult, ChatCompletionChunk, ChatCompletion> {
  const calls = oneCall ? 1 : Infinity
  const about = envelope('chatcmpl', 'chat.completion', model)
  const chunk = (choices: ChatCompletionChunk['choices'], usage: Usage | null = null): ChatCompletionChunk => ({
    ...about,
    object: 'chat.completion.chunk',
    choices,
    ...(includeUsage && { usage }),
  })
  return {
    opening: (index) => [chunk([{ index, delta: { role: 'assistant', content: '' }, logprobs: null, finish_reason: null }])],
    piece: (index, piece) => chunk([{ index, delta: chatDelta(piece, calls), logprobs: null, finish_reason: null }]),
    closing: (index, result) => {
      const logprobs = chatLogprobs(result.logprobs, result.content)
      return chunk([{ index, delta: {}, logprobs, finish_reason: finishReason(result.finishReason) }])
    },
    usage: (usage) => chunk([], usage),
    whole: (results, usage) => ({
      ...about,
      choices: results.map((result, index) => ({
        index,
        message: chatMessage(result, calls),
        logprobs: chatLogprobs(result.logprobs, result.content),
        finish_reason: finishReason(result.finishReason),
      })),
      usage,
    }),
  }
}

function chatDelta({ content, reasoning, toolCalls = [] }: ChatDelta, calls: number): ChatDeltaShape {
  const wanted = toolCalls.filter(({ index }) => index < calls)
  return {
    ...(content !== undefined && { content }),
    ...(reasoning !== undefined && { reasoning_content: reasoning }),
    ...(wanted.length > 0 && {
      tool_calls: wanted.map(({ index, id, name, arguments: text = '' }) =>
        name === undefined ? { index, function: { arguments: text } } : { index, id, type: 'function', function: { name, arguments: text } }
      ),
    }),
  }
}

function chatMessage({ content, reasoning, toolCalls }: ChatResult, calls: number): ChatMessageShape {
  return {
    role: 'assistant',
    content: content === '' && toolCalls.length > 0 ? null : content,
    refusal: null,
    ...(reasoning !== '' && { reasoning_content: reasoning }),
    ...(toolCalls.length > 0 && { tool_calls: toolCalls.slice(0, calls).map(toolCall) }),
  }
}

function toolCall({ id = '', function: { name, arguments: given } }: ToolCall) {
  const text = typeof given === 'string' ? given : JSON.stringify(given)
  return { id, type: 'function' as const, function: { name, arguments: text } }
}

export function completionFormat(
  model: string,
  { includeUsage }: Pick<CompletionJob, 'includeUsage'>
): Format<string, GenerateResult, CompletionChunk, Completion> {
  const about = envelope('cmpl', 'text_completion', model)
  const chunk = (choices: CompletionChunk['choices'], usage: Usage | null = null): CompletionChunk => ({
    ...about,
    choices,
    ...(includeUsage && { usage }),
  })
  const last = ({ text, logprobs, finishReason }: GenerateResult) => ({
    logprobs: completionLogprobs(logprobs, text),
    finish_reason: finishReason === 'length' ? ('length' as const) : ('stop' as const),
  })
  return {
    opening: () => [],
    piece: (index, text) => chunk([{ index, text, logprobs: null, finish_reason: null }]),
    closing: (index, result) => chunk([{ index, text: '', ...last(result) }]),
    usage: (usage) => chunk([], usage),
    whole: (results, usage) => ({ ...about, choices: results.map((result, index) => ({ index, text: result.text, ...last(result) })), usage }),
  }
}
