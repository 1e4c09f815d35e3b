// Keeps what people wrote inert: a mark inside each control token they typed, which the encoder takes out again and reads as plain text.
import { QwasmError } from '../errors.js'
import type { AddedToken } from '../types.js'
import type { PlainMessage } from './messages.js'

/** In an assistant's own words these tags keep their meaning; everywhere else they are text. */
const ASSISTANT_TAGS = new Set(['<think>', '</think>', '<tool_call>', '</tool_call>'])

/** A private-use code point that occurs nowhere in `texts`. */
export function chooseMark(texts: readonly string[]): string {
  for (const [first, last] of [
    [0xe000, 0xf8ff],
    [0xf0000, 0xffffd],
  ] as const) {
    for (let code = first; code <= last; code++) {
      const mark = String.fromCodePoint(code)
      if (!texts.some((text) => text.includes(mark))) return mark
    }
  }
  throw new QwasmError(
    'unsupported',
    'The messages use every private-use character, so none is left to mark typed control tokens.'
  )
}

/** Marks every occurrence of the tokens in `text`, overlapping ones too, after its first character. */
export function markText(text: string, tokens: readonly string[], mark: string): string {
  const places = new Set<number>()
  for (const token of tokens) {
    const first = token.codePointAt(0)! > 0xffff ? 2 : 1
    for (let at = text.indexOf(token); at !== -1; at = text.indexOf(token, at + 1)) places.add(at + first)
  }
  if (places.size === 0) return text
  let marked = ''
  let from = 0
  for (const place of [...places].sort((a, b) => a - b)) {
    marked += text.slice(from, place) + mark
    from = place
  }
  return marked + text.slice(from)
}

/** A copy of plain data with all its strings marked, names of fields too. */
function markDeep(value: unknown, tokens: readonly string[], mark: string): unknown {
  if (typeof value === 'string') return markText(value, tokens, mark)
  if (Array.isArray(value)) return value.map((entry) => markDeep(entry, tokens, mark))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, entry]) => [markText(key, tokens, mark), markDeep(entry, tokens, mark)])
  )
}

/** Messages and tools with all that people wrote marked. */
export function markChat(messages: readonly PlainMessage[], tools: unknown, added: readonly AddedToken[], mark: string) {
  const all = added.map((token) => token.content).filter((content) => content !== '')
  const noTags = all.filter((content) => !ASSISTANT_TAGS.has(content))
  const marked = messages.map((message) => {
    const copy = markDeep(message, all, mark) as PlainMessage
    if (message.role !== 'assistant') return copy
    copy.content = markText(message.content, noTags, mark)
    const reasoning = message['reasoning_content']
    if (typeof reasoning === 'string') copy['reasoning_content'] = markText(reasoning, noTags, mark)
    return copy
  })
  return { messages: marked, tools: markDeep(tools, all, mark) }
}
