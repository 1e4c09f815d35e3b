// Takes tool calls out of an answer's content while it streams; tags may be split over pieces.
import type { ChatDelta, ParsedToolCall } from '../types.js'
import { heldBack } from './stop.js'
import { beginsCall, mayEnd, parseCall } from './tool-call.js'
import type { ToolSet } from './tools.js'

const OPEN = '<tool_call>'
const CLOSE = '</tool_call>'

/**
 * A call is shown when it is complete and valid: half a call cannot be taken back, and one that is malformed stays text, with a warning.
 * White space around calls is the template's, not the content's.
 */
export class ToolSplitter {
  readonly calls: ParsedToolCall[] = []
  readonly warnings: string[] = []
  content = ''
  readonly #tools: ToolSet
  #state: 'content' | 'call' = 'content'
  #held = '' // of the content what is not sure yet, or the call's text so far
  #space = '' // the white space before the call
  #searched = 0 // how far the call's text holds no tag that ends it

  constructor(tools: ToolSet) {
    this.#tools = tools
  }

  push(text: string): ChatDelta[] {
    const deltas: ChatDelta[] = []
    this.#held += text
    while (this.#state === 'content' ? this.#readContent(deltas) : this.#readCall(deltas));
    return deltas
  }

  /** What is still held back at the end. A call that lacks nothing but its closing tag counts. */
  end(): ChatDelta[] {
    const deltas: ChatDelta[] = []
    if (this.#state === 'call') this.#endCall(deltas, this.#held.length, this.#held.length)
    if (this.#held.trim() !== '' || this.calls.length === 0) this.#show(deltas, this.#held)
    this.#held = ''
    return deltas
  }

  /** Whether a call begins: then its text is next. */
  #readContent(deltas: ChatDelta[]): boolean {
    const open = this.#held.indexOf(OPEN)
    const sure = open >= 0 ? this.#held.slice(0, open) : this.#held.slice(0, this.#held.length - heldBack(this.#held, [OPEN]))
    const shown = sure.trimEnd()
    this.#show(deltas, shown)
    if (open < 0) {
      this.#held = this.#held.slice(shown.length)
      return false
    }
    this.#space = sure.slice(shown.length)
    this.#held = this.#held.slice(open + OPEN.length)
    this.#searched = 0
    this.#state = 'call'
    return true
  }

  /** Whether the call has ended: then content is next. */
  #readCall(deltas: ChatDelta[]): boolean {
    if (!beginsCall(this.#held)) {
      this.#refuse(deltas, 0, 'neither { nor <function= follows the tag')
      return true
    }
    // A call whose closing tag was forgotten ends where the next one begins.
    for (const { 0: tag, index } of this.#held.slice(this.#searched).matchAll(/<\/?tool_call>/g)) {
      const at = this.#searched + index
      if (mayEnd(this.#held.slice(0, at))) {
        this.#endCall(deltas, at, tag === CLOSE ? at + CLOSE.length : at)
        return true
      }
    }
    this.#searched = Math.max(this.#searched, this.#held.length - heldBack(this.#held, [OPEN, CLOSE]))
    return false
  }

  /** Shows the call whose text ends at `end`; what comes after it begins at `next`. */
  #endCall(deltas: ChatDelta[], end: number, next: number): void {
    const call = parseCall(this.#held.slice(0, end), this.#tools)
    if (typeof call === 'string') return this.#refuse(deltas, next, call)
    const index = this.calls.length
    const id = callId()
    this.calls.push({ id, type: 'function', function: call })
    deltas.push({ toolCalls: [{ index, id, name: call.name }] }, { toolCalls: [{ index, id, arguments: call.arguments }] })
    this.#held = this.#held.slice(next)
    this.#state = 'content'
  }

  /** Leaves the tag, and what follows it up to `next`, as text. */
  #refuse(deltas: ChatDelta[], next: number, problem: string): void {
    this.warnings.push(`A tool call is no valid one and was left as text: ${problem}.`)
    this.#show(deltas, this.#space + OPEN + this.#held.slice(0, next))
    this.#held = this.#held.slice(next)
    this.#state = 'content'
  }

  #show(deltas: ChatDelta[], text: string): void {
    const shown = this.content === '' && this.calls.length > 0 ? text.trimStart() : text
    if (shown === '') return
    this.content += shown
    deltas.push({ content: shown })
  }
}

const ID_LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_' // 64, so each byte gives one evenly

function callId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(24))
  return `call_${Array.from(bytes, (byte) => ID_LETTERS[byte % 64]).join('')}`
}
