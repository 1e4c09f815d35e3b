// One turn of a chat: the prompt's ids, what leads the answer, and the answer taken apart.
import type { AddedToken, ChatOptions } from '../types.js'
import { ChatAnswer } from './answer.js'
import { QwasmError } from '../errors.js'
import { formatGrammar } from '../grammar/response-format.js'
import { AnswerGuide, type Bound } from './guide.js'
import { openedThinking, type ChatRenderer } from './template.js'
import { boundCall } from './tool-grammar.js'
import { chooseTools, type ToolSet } from './tools.js'

/** Ids of a text; with the mark, if one is given, that keeps tags plain text. */
export type Encode = (text: string, mark: string) => number[]

export type TurnOptions = Omit<ChatOptions, 'signal'>

export interface Turn {
  ids: number[]
  guide: AnswerGuide
  answer: ChatAnswer
}

export function beginTurn(chat: ChatRenderer, added: readonly AddedToken[], encode: Encode, messages: unknown, options: TurnOptions): Turn {
  const { shown, callable, required } = chooseTools(options)
  const rendered = chat.render(messages, { ...options, tools: shown })
  const source = chat.source(shown)
  const opened = openedThinking(rendered, added)
  const guide = new AnswerGuide({
    opened,
    mayThink: options.thinking !== false && /\benable_thinking\b/.test(source),
    budget: options.thinkingBudget,
    bound: required ? boundCall(callable, source) : boundContent(options, callable),
  })
  return { ids: encode(rendered.marked, rendered.mark), guide, answer: new ChatAnswer(opened !== undefined, callable) }
}

function boundContent({ responseFormat }: TurnOptions, callable: ToolSet): Bound | undefined {
  const grammar = formatGrammar(responseFormat)
  if (grammar === undefined) return undefined
  if (callable.size === 0) return { beginning: '', grammar, ending: '' }
  const sentence = "chat: responseFormat leaves no room for tool calls; toolChoice 'none' answers in that format, 'required' calls a tool."
  throw new QwasmError('unsupported', sentence)
}
