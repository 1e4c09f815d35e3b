// How many requests run at the same time, and how many wait for that.
import { abortError } from '../errors.js'

export class Places {
  readonly #places: number
  readonly #queue: number
  readonly #waiting = new Set<() => void>()
  #taken = 0

  constructor(places: number, queue: number) {
    this.#places = places
    this.#queue = queue
  }

  get taken(): number {
    return this.#taken
  }

  get waiting(): number {
    return this.#waiting.size
  }

  /** Whether nobody else can even wait. */
  get full(): boolean {
    return this.#taken >= this.#places && this.#waiting.size >= this.#queue
  }

  /** Waits for a place, first come, first served; gives the function that leaves it. */
  async enter(signal: AbortSignal): Promise<() => void> {
    if (signal.aborted) throw abortError(signal)
    if (this.#taken < this.#places) this.#taken++
    else await this.#wait(signal) // whoever leaves hands over the place
    return () => this.#leave()
  }

  #wait(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const turn = () => {
        signal.removeEventListener('abort', giveUp)
        resolve()
      }
      const giveUp = () => {
        this.#waiting.delete(turn)
        reject(abortError(signal))
      }
      this.#waiting.add(turn)
      signal.addEventListener('abort', giveUp, { once: true })
    })
  }

  #leave(): void {
    const [next] = this.#waiting
    if (!next) return void this.#taken--
    this.#waiting.delete(next)
    next()
  }
}
