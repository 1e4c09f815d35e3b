// Which calls run the model: a few at a time, in the order of asking. Calls that wait can be taken back.
import { abortError } from '../errors.js'
import { Gate } from '../loader/gate.js'

/** What the caller asked of a running or waiting call. */
export class Control {
  aborted = false
  stopped = false
  /** Closed while a load is paused. */
  readonly gate = new Gate()

  obey(word: 'stop' | 'abort' | 'pause' | 'resume'): void {
    if (word === 'abort') this.aborted = true
    else if (word === 'stop') this.stopped = true
    else this.gate[word]()
  }

  throwIfAborted(): void {
    if (this.aborted) throw abortError()
  }
}

const REST_MS = 500 // calls that follow one another leave shorter gaps

interface Waiting {
  owner: object | undefined
  start: () => Promise<void>
}

export class Queue {
  readonly #most: number
  readonly #waiting: Waiting[] = []
  /** The owners of the running calls. */
  readonly #running: (object | undefined)[] = []
  readonly #resting: (() => void)[] = []

  constructor(most: number) {
    this.#most = most
  }

  get busy(): boolean {
    return this.#running.length > 0
  }

  /** Resolves once no call has run for a moment. */
  async rest(): Promise<void> {
    while (this.busy) {
      await new Promise<void>((resolve) => this.#resting.push(resolve))
      await new Promise((resolve) => setTimeout(resolve, REST_MS))
    }
  }

  /**
   * Runs `task` when its turn has come: no more than `most` at a time, and of the calls of one `owner` one after the other, which holds up nobody
   * else. An aborted one is skipped.
   */
  run<T>(control: Control, task: () => Promise<T>, owner?: object): Promise<T> {
    return new Promise((resolve, reject) => {
      const start = async () => {
        try {
          control.throwIfAborted()
          resolve(await task())
        } catch (error) {
          reject(error)
        }
      }
      this.#waiting.push({ owner, start })
      this.#next()
    })
  }

  #next(): void {
    while (this.#running.length < this.#most) {
      const at = this.#waiting.findIndex(({ owner }) => owner === undefined || !this.#running.includes(owner))
      if (at < 0) return
      const { owner, start } = this.#waiting.splice(at, 1)[0]!
      this.#running.push(owner)
      void start().then(() => {
        this.#running.splice(this.#running.indexOf(owner), 1)
        this.#next()
        if (!this.busy) for (const rested of this.#resting.splice(0)) rested()
      })
    }
  }
}
