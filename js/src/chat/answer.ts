// An answer taken apart while it streams: reasoning, content and tool calls.
import type { ChatDelta, ChatResult, FinishReason } from '../types.js'
import { ReasoningSplitter } from './reasoning.js'
import { ToolSplitter } from './tool-splitter.js'
import type { ToolSet } from './tools.js'

export class ChatAnswer {
  readonly #reasoning: ReasoningSplitter
  readonly #calls: ToolSplitter | undefined

  /** `thinking`: the prompt already opened the block. Without tools, text that looks like a call is text. */
  constructor(thinking: boolean, tools: ToolSet) {
    this.#reasoning = new ReasoningSplitter(thinking)
    this.#calls = tools.size > 0 ? new ToolSplitter(tools) : undefined
  }

  push(text: string): ChatDelta[] {
    return this.#reasoning.push(text).flatMap((piece) => this.#takeCalls(piece))
  }

  /** What is still held back at the end. */
  end(): ChatDelta[] {
    const last = this.#reasoning.end().flatMap((piece) => this.#takeCalls(piece))
    return [...last, ...(this.#calls?.end() ?? [])]
  }

  /** The whole, after the end. */
  result(finishReason: FinishReason): Pick<ChatResult, 'content' | 'reasoning' | 'toolCalls' | 'warnings' | 'finishReason'> {
    const { content, calls: toolCalls, warnings } = this.#calls ?? { content: this.#reasoning.content, calls: [], warnings: [] }
    const calls = finishReason === 'stop' && toolCalls.length > 0
    return { content, reasoning: this.#reasoning.reasoning, toolCalls, warnings, finishReason: calls ? 'tool_calls' : finishReason }
  }

  #takeCalls(piece: ChatDelta): ChatDelta[] {
    return piece.content === undefined || !this.#calls ? [piece] : this.#calls.push(piece.content)
  }
}
