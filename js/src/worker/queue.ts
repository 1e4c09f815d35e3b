// One at a time, in the order of asking: calls that run the model for long. Calls that wait can be taken back.
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

export class Queue {
  #last: Promise<unknown> = Promise.resolve()

  /** Runs `task` after everything that was asked before it; an aborted one is skipped. */
  run<T>(control: Control, task: () => Promise<T>): Promise<T> {
    const result = this.#last.then(() => {
      control.throwIfAborted()
      return task()
    })
    this.#last = result.catch(() => {})
    return result
  }
}
