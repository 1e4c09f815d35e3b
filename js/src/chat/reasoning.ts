// Takes an answer apart into reasoning and content while it streams; tags may be split over pieces.
import { heldBack } from './stop.js'

export interface ChatPiece {
  content?: string
  reasoning?: string
}

const OPEN = '<think>'
const CLOSE = '</think>'

export class ReasoningSplitter {
  content = ''
  reasoning = ''
  // 'start': nothing but white space so far; 'gap': the line breaks that follow a closing tag, which belong to no side
  #state: 'start' | 'thinking' | 'gap' | 'content'
  #held = ''

  /** `thinking`: the prompt already opened the block. */
  constructor(thinking: boolean) {
    this.#state = thinking ? 'thinking' : 'start'
  }

  /** Whether what comes next belongs to a thinking block. */
  get thinking(): boolean {
    return this.#state === 'thinking'
  }

  push(text: string): ChatPiece[] {
    const pieces: ChatPiece[] = []
    this.#held += text
    let state
    do {
      state = this.#state
      this.#step(pieces)
    } while (this.#state !== state)
    return pieces
  }

  /** What is still held back at the end. */
  end(): ChatPiece[] {
    const pieces: ChatPiece[] = []
    if (this.#state === 'thinking') this.#emit(pieces, 'reasoning', this.#held.replace(/\n+$/, ''))
    else this.#emit(pieces, 'content', this.#held)
    this.#held = ''
    return pieces
  }

  #step(pieces: ChatPiece[]): void {
    if (this.#state === 'start') {
      const begun = this.#held.trimStart()
      if (begun.startsWith(OPEN)) {
        this.#held = begun.slice(OPEN.length)
        this.#state = 'thinking'
      } else if (!OPEN.startsWith(begun)) {
        this.#state = 'content'
      }
    } else if (this.#state === 'thinking') {
      this.#think(pieces)
    } else if (this.#state === 'gap') {
      this.#held = this.#held.replace(/^\n+/, '')
      if (this.#held !== '') this.#state = 'content'
    } else {
      this.#emit(pieces, 'content', this.#held)
      this.#held = ''
    }
  }

  #think(pieces: ChatPiece[]): void {
    if (this.reasoning === '') this.#held = this.#held.replace(/^\n+/, '')
    const end = this.#held.indexOf(CLOSE)
    // Line breaks before the closing tag are the template's, not the reasoning's: they wait until something else follows.
    const sure = end >= 0 ? this.#held.slice(0, end) : this.#held.slice(0, this.#held.length - heldBack(this.#held, [CLOSE]))
    const shown = sure.replace(/\n+$/, '')
    this.#emit(pieces, 'reasoning', shown)
    if (end >= 0) {
      this.#held = this.#held.slice(end + CLOSE.length)
      this.#state = 'gap'
    } else {
      this.#held = this.#held.slice(shown.length)
    }
  }

  #emit(pieces: ChatPiece[], side: 'content' | 'reasoning', text: string): void {
    if (text === '') return
    this[side] += text
    pieces.push({ [side]: text })
  }
}
