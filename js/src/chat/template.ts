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

// Names that Hugging Face fills from the tokenizer's settings; the core does not hand them over.
const TOKEN_VARIABLES = ['bos_token', 'eos_token', 'pad_token', 'unk_token']

export class ChatRenderer {
  readonly #templates: Readonly<Record<string, string>>
  readonly #added: readonly AddedToken[]
  readonly #parsed = new Map<string, Template>()

  constructor(templates: Readonly<Record<string, string>>, added: readonly AddedToken[]) {
    this.#templates = templates
    this.#added = added
  }

  get names(): string[] {
    return Object.keys(this.#templates)
  }

  render(givenMessages: unknown, options: RenderOptions): Rendered {
    const { tools, thinking, templateVariables = {}, addGenerationPrompt = true } = options
    const source = this.#source(tools !== undefined && tools.length > 0)
    this.#checkVariables(source, templateVariables)
    const messages = normalizeMessages(givenMessages, !/\barguments\s+is\s+(not\s+)?(string|mapping)/.test(source))
    const written = JSON.stringify([messages, tools ?? null, templateVariables])
    const mark = chooseMark([written, source, ...this.#added.map((token) => token.content)])
    const inert = markChat(messages, tools ?? null, this.#added, mark)
    const marked = this.#run(source, {
      ...templateVariables,
      messages: inert.messages,
      tools: inert.tools,
      add_generation_prompt: addGenerationPrompt,
      ...(thinking !== undefined && { enable_thinking: thinking }),
    })
    return { text: marked.replaceAll(mark, ''), marked, mark }
  }

  /** As transformers does: a template named tool_use where there are tools, else the ordinary one. */
  #source(withTools: boolean): string {
    const name = withTools && Object.hasOwn(this.#templates, 'tool_use') ? 'tool_use' : 'default'
    const source = Object.hasOwn(this.#templates, name) ? this.#templates[name] : undefined
    if (source !== undefined) return source
    const there = this.names.length > 0 ? `, only ones named ${this.names.join(', ')}` : ''
    throw new QwasmError('missing', `The model has no chat template${there}, so a conversation cannot be written as a prompt.`)
  }

  #checkVariables(source: string, given: Record<string, unknown>): void {
    for (const name of TOKEN_VARIABLES) {
      if (new RegExp(`\\b${name}\\b`).test(source) && !Object.hasOwn(given, name)) {
        throw new QwasmError('template', `The chat template uses the variable ${name}; give it in templateVariables.`)
      }
    }
  }

  #run(source: string, variables: Record<string, unknown>): string {
    try {
      let template = this.#parsed.get(source)
      if (!template) this.#parsed.set(source, (template = new Template(source)))
      return template.render(variables)
    } catch (cause) {
      const said = cause instanceof Error ? cause.message : String(cause)
      throw new QwasmError('template', `The chat template cannot be rendered: ${said}`, { cause })
    }
  }
}

/** Whether the answer begins inside a thinking block that the prompt opened: the last turn holds <think> without </think>. */
export function opensThinking(rendered: Rendered, added: readonly AddedToken[]): boolean {
  const starts = added.filter((token) => token.special).map((token) => rendered.marked.lastIndexOf(token.content))
  const turn = rendered.marked.slice(Math.max(0, ...starts))
  return turn.lastIndexOf('<think>') > turn.lastIndexOf('</think>')
}
