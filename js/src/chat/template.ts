// Renders conversations with the model's own chat template.
import { Template } from '@huggingface/jinja'
import { QwasmError } from '../errors.js'
import type { AddedToken, RenderOptions } from '../types.js'
import { chooseMark, markChat } from './inert.js'
import { normalizeMessages } from './messages.js'

/** A rendered prompt: `marked` carries the mark inside control tokens that people typed, `text` is the same without. */
export interface Rendered {
  text: string
  marked: string
  mark: string
}

export class ChatRenderer {
  readonly #templates: Readonly<Record<string, string>>
  readonly #added: readonly AddedToken[]
  readonly #specialTokens: Readonly<Record<string, string>>
  readonly #parsed = new Map<string, Template>()

  /** `specialTokens`: texts by the names that templates know, such as eos_token. As in transformers, one that is not there is nothing. */
  constructor(
    templates: Readonly<Record<string, string>>,
    added: readonly AddedToken[],
    specialTokens: Readonly<Record<string, string>> = {}
  ) {
    this.#templates = templates
    this.#added = added
    this.#specialTokens = specialTokens
  }

  get names(): string[] {
    return Object.keys(this.#templates)
  }

  render(givenMessages: unknown, options: RenderOptions): Rendered {
    const { tools = [], thinking, templateVariables = {}, addGenerationPrompt = true } = options
    const source = this.source(tools)
    const messages = normalizeMessages(givenMessages, !/\barguments\s+is\s+(not\s+)?string/.test(source))
    const written = JSON.stringify([messages, tools, templateVariables])
    const mark = chooseMark([written, source, ...this.#added.map((token) => token.content)])
    const inert = markChat(messages, tools, this.#added, mark)
    const marked = this.#run(source, {
      ...this.#specialTokens,
      ...templateVariables,
      messages: inert.messages,
      tools: tools.length > 0 ? inert.tools : null,
      add_generation_prompt: addGenerationPrompt,
      ...(thinking !== undefined && { enable_thinking: thinking }),
    })
    return { text: marked.replaceAll(mark, ''), marked, mark }
  }

  /** The template's text. As transformers does: one named tool_use where there are tools, else the ordinary one. */
  source(tools: readonly unknown[] = []): string {
    const name = tools.length > 0 && Object.hasOwn(this.#templates, 'tool_use') ? 'tool_use' : 'default'
    const source = Object.hasOwn(this.#templates, name) ? this.#templates[name] : undefined
    if (source !== undefined) return source
    const there = this.names.length > 0 ? `, only ones named ${this.names.join(', ')}` : ''
    throw new QwasmError('missing', `The model has no chat template${there}, so a conversation cannot be written as a prompt.`)
  }

  #run(source: string, variables: Record<string, unknown>): string {
    let template = this.#parsed.get(source)
    try {
      if (!template) this.#parsed.set(source, (template = new Template(source)))
      return template.render(variables)
    } catch (cause) {
      let said = cause instanceof Error ? cause.message : String(cause)
      // Of a function that is not there the library does not say the name.
      if (said.startsWith('Cannot call')) said += `; it calls ${[...new Set(calledNames(template?.parsed))].join(', ')}`
      throw new QwasmError('template', `The chat template cannot be rendered: ${said}`, { cause })
    }
  }
}

/** Names of the functions that a template calls; filters are none. */
function* calledNames(node: unknown): Generator<string> {
  if (typeof node !== 'object' || node === null) return
  const { type, callee } = node as { type?: string; callee?: { type?: string; value?: unknown } }
  if (type === 'CallExpression' && callee?.type === 'Identifier') yield String(callee.value)
  for (const [key, part] of Object.entries(node)) if (key !== 'filter' && key !== 'test') yield* calledNames(part)
}

/** The prompt's end from <think> on, where the answer begins inside a block that it opened: the last turn holds <think> without </think>. */
export function openedThinking(rendered: Rendered, added: readonly AddedToken[]): string | undefined {
  const starts = added.filter((token) => token.special).map((token) => rendered.marked.lastIndexOf(token.content))
  const turn = rendered.marked.slice(Math.max(0, ...starts))
  const open = turn.lastIndexOf('<think>')
  return open > turn.lastIndexOf('</think>') ? turn.slice(open) : undefined
}
