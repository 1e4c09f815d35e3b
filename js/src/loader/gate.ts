// A gate before the network: while it is shut, nothing is asked for and nothing flows.

export class Gate {
  #paused = false
  readonly #waiting = new Set<() => void>()
  readonly #flowing = new Set<() => void>()

  get paused(): boolean {
    return this.#paused
  }

  pause(): void {
    this.#paused = true
    for (const stop of [...this.#flowing]) stop()
  }

  resume(): void {
    this.#paused = false
    const waiting = [...this.#waiting]
    this.#waiting.clear()
    for (const go of waiting) go()
  }

  /** Resolves once the gate is open. */
  async opened(): Promise<void> {
    while (this.#paused) await new Promise<void>((resolve) => this.#waiting.add(resolve))
  }

  /** Calls `stop` at every pause; what it returns takes that back. */
  onPause(stop: () => void): () => void {
    this.#flowing.add(stop)
    return () => void this.#flowing.delete(stop)
  }
}
