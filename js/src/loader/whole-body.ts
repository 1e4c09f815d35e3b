// A file's one open body, for servers that know no ranges: read forwards, opened anew to go back.
import type { Answer } from './answer.js'

export class WholeBody {
  #answer: Answer | undefined
  #turn: Promise<unknown> = Promise.resolve()
  #tasks = 0

  constructor(answer?: Answer) {
    this.#answer = answer
  }

  /** Whether nobody reads and nobody waits. */
  get idle(): boolean {
    return this.#tasks === 0
  }

  /** One task after the other, in the order in which they were asked: a body has one place. */
  inTurn<T>(task: () => Promise<T>): Promise<T> {
    this.#tasks++
    const turn = this.#turn.then(task).finally(() => this.#tasks--)
    this.#turn = turn.catch(() => {})
    return turn
  }

  /** The body at a place of the file, or at its end where it ends before; `open` gives a new one. */
  async at(position: number, open: () => Promise<Answer>): Promise<Answer> {
    if (!this.#answer || this.#answer.over || this.#answer.taken > position) {
      this.close()
      this.#answer = await open()
    }
    const answer = this.#answer
    await answer.skip(position - answer.taken)
    return answer
  }

  close(): void {
    this.#answer?.close()
    this.#answer = undefined
  }
}
