// Stop strings in a stream of text: shows nothing that could still become a stop, and never the stop itself.

/** Characters at the end of `text` that could be the beginning of one of `words`. */
export function heldBack(text: string, words: readonly string[]): number {
  const longest = Math.max(0, ...words.map((word) => word.length))
  for (let length = Math.min(longest - 1, text.length); length > 0; length--) {
    const tail = text.slice(text.length - length)
    if (words.some((word) => word.length > length && word.startsWith(tail))) return length
  }
  return 0
}

export class StopWatch {
  readonly #stops: readonly string[]
  #held = ''
  /** Whether a stop was seen; nothing comes after it. */
  hit = false

  constructor(stops: readonly string[]) {
    this.#stops = stops
  }

  /** The text that is sure to be shown. */
  push(text: string): string {
    if (this.hit) return ''
    this.#held += text
    const first = this.#first()
    this.hit = first !== undefined
    const sure = first ?? this.#held.length - heldBack(this.#held, this.#stops)
    const shown = this.#held.slice(0, sure)
    this.#held = this.hit ? '' : this.#held.slice(sure)
    return shown
  }

  /** Where the stop that is complete first begins: so the answer does not depend on how the text was cut into pieces. */
  #first(): number | undefined {
    let first: { start: number; end: number } | undefined
    for (const stop of this.#stops) {
      const start = this.#held.indexOf(stop)
      const end = start + stop.length
      if (start >= 0 && (!first || end < first.end || (end === first.end && start < first.start))) first = { start, end }
    }
    return first?.start
  }

  /** What was held back for a stop that did not come. */
  end(): string {
    const rest = this.#held
    this.#held = ''
    return rest
  }
}
