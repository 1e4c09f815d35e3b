// Log-probabilities in OpenAI's two forms. Ours has an entry for each generated token; theirs for those of the text that is given.
import type { TokenLogprob } from '../types.js'
import type { ChoiceLogprobs, CompletionLogprobs } from './shapes.js'

/** Those of an answer's content: not of its thinking, its tool calls, its end and a stop text. */
export function chatLogprobs(all: readonly TokenLogprob[] | undefined, content: string): ChoiceLogprobs | null {
  if (!all) return null
  const shape = ({ token, bytes, logprob }: Omit<TokenLogprob, 'top'>) => ({ token, bytes, logprob })
  return { content: tokensOf(content, all).map((token) => ({ ...shape(token), top_logprobs: token.top.map(shape) })), refusal: null }
}

export function completionLogprobs(all: readonly TokenLogprob[] | undefined, text: string): CompletionLogprobs | null {
  if (!all) return null
  const tokens = tokensOf(text, all)
  let length = 0
  return {
    tokens: tokens.map(({ token }) => token),
    token_logprobs: tokens.map(({ logprob }) => logprob),
    top_logprobs: tokens.map(({ top }) => Object.fromEntries(top.map(({ token, logprob }) => [token, logprob]))),
    text_offset: tokens.map(({ token }) => (length += token.length) - token.length),
  }
}

/** The tokens that make up a text, which may begin and end amid a token; all where it cannot be found. */
function tokensOf(text: string, all: readonly TokenLogprob[]): TokenLogprob[] {
  const bytes = all.flatMap((token) => token.bytes)
  const afterThinking = lastEnd(bytes, '</think>')
  const wanted = new TextEncoder().encode(text)
  const start = find(bytes, wanted, afterThinking)
  if (start < 0) return [...all]
  let position = 0
  return all.filter((token) => {
    const first = position
    position += token.bytes.length
    return position > start && first < start + wanted.length
  })
}

const latin1 = (bytes: ArrayLike<number>): string => Array.from(bytes, (byte) => String.fromCharCode(byte)).join('')

function find(bytes: readonly number[], wanted: Uint8Array, from: number): number {
  return latin1(bytes).indexOf(latin1(wanted), from)
}

function lastEnd(bytes: readonly number[], tag: string): number {
  const start = latin1(bytes).lastIndexOf(tag)
  return start < 0 ? 0 : start + tag.length
}
