// Leads an answer where the sampler alone would not: ends thinking that is over its budget, and begins content that a grammar binds.
import { ReasoningSplitter } from './reasoning.js'

const OPEN = '<think>'
const CLOSE = '</think>'
const GAP = '\n\n' // between the block and the answer, as models learnt it

/** What comes next in an answer without being drawn. */
export interface Lead {
  /** Its tags are tags. */
  text: string
  /** What is drawn after it obeys this grammar, and this text comes once the grammar has ended. */
  grammar?: string
  ending?: string
}

/** Says what comes next in an answer without being drawn: at its start, and after each token's text. */
export interface Guide {
  start(): Lead | undefined
  after(text: string): Lead | undefined
  /** In place of an end token, where it would come too early. */
  instead(): Lead | undefined
}

export interface GuideOptions {
  /** The prompt's end, where it leaves a thinking block open. */
  opened?: string | undefined
  /** The model may open a block by itself. */
  mayThink: boolean
  budget?: number | undefined
  bound?: Bound | undefined
}

/** What binds the content after thinking: its beginning, the grammar of what follows that, and its ending. */
export interface Bound {
  beginning: string
  grammar: string
  ending: string
}

const boundLead = ({ beginning, ...rest }: Bound, gap = ''): Lead => ({ text: gap + beginning, ...rest })

export class AnswerGuide implements Guide {
  readonly #options: GuideOptions
  readonly #blocks: ReasoningSplitter
  #spent = 0
  #tail = ''

  constructor(options: GuideOptions) {
    this.#options = options
    this.#blocks = new ReasoningSplitter(options.opened !== undefined)
  }

  /** How the answer begins. Where its content is bound, whether it thinks first must be settled before the first token is drawn. */
  start(): Lead | undefined {
    const { opened, mayThink, budget, bound } = this.#options
    if (opened !== undefined) return budget === 0 ? this.#close(opened) : undefined
    if (!bound) return undefined
    if (!mayThink) return boundLead(bound)
    this.#blocks.push(OPEN)
    const rest = budget === 0 ? this.#close(OPEN) : { text: '\n' }
    return { ...rest, text: OPEN + rest.text }
  }

  /** What comes after a token with this text was drawn. */
  after(text: string): Lead | undefined {
    const thinking = this.#blocks.thinking
    if (thinking) this.#spent++
    this.#tail = text
    this.#blocks.push(text)
    if (this.#blocks.thinking) return this.#isOver(text) ? this.#close(text) : undefined
    return thinking && this.#options.bound ? this.#content(text) : undefined
  }

  /** A block that is ended together with the answer is closed, where content must come. */
  instead(): Lead | undefined {
    return this.#blocks.thinking && this.#options.bound ? this.#close(this.#tail) : undefined
  }

  #isOver(text: string): boolean {
    const { budget = Infinity } = this.#options
    const cut = text === '' // inside a character, which ends within 3 tokens
    return this.#spent >= budget + (cut ? 3 : 0)
  }

  /** Closes the block, whose text ends with `tail`: at the beginning of a line, after an empty one where nothing was thought. */
  #close(tail: string): Lead {
    const breaks = this.#blocks.reasoning === '' ? GAP : '\n'
    const text = breaks.slice(trailingBreaks(tail)) + CLOSE
    this.#blocks.push(text)
    const { text: more, ...rest } = this.#content(CLOSE)
    return { text: text + more, ...rest }
  }

  #content(tail: string): Lead {
    const { bound } = this.#options
    const gap = GAP.slice(trailingBreaks(tail))
    return bound ? boundLead(bound, gap) : { text: gap }
  }
}

function trailingBreaks(text: string): number {
  return text.length - text.replace(/\n+$/, '').length
}
