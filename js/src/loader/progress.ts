// Counts arriving bytes and says now and then how far the loading is.
import type { LoadProgress } from '../types.js'

const EVERY_MS = 50
const WINDOW_MS = 3000 // the rate is that of the last seconds: long enough to be steady, short enough to follow a change

export class ProgressMeter {
  /** Bytes of weights in all; 0 until the headers were read. */
  total = 0
  readonly #report: (progress: LoadProgress) => void
  #loaded = 0
  #lastReport = -Infinity
  #samples: { time: number; loaded: number }[] = []

  constructor(report: (progress: LoadProgress) => void) {
    this.#report = report
  }

  add(file: string, count: number): void {
    this.#loaded += count
    const now = performance.now()
    if (now - this.#lastReport < EVERY_MS) return
    this.#lastReport = now
    this.#samples.push({ time: now, loaded: this.#loaded })
    while (this.#samples.length > 2 && now - this.#samples[0]!.time > WINDOW_MS) this.#samples.shift()
    this.#send(this.total > 0 ? 'weights' : 'headers', file)
  }

  finish(total: number): void {
    this.total = this.#loaded = total
    this.#send('ready', '')
  }

  #send(phase: LoadProgress['phase'], file: string): void {
    // A body that was read twice may count twice; progress never passes the total.
    const loaded = Math.min(this.#loaded, this.total)
    const rate = this.#rate()
    const secondsLeft = rate === null || this.total === 0 ? null : (this.total - loaded) / rate
    this.#report({ phase, file, loaded, total: this.total, rate, secondsLeft })
  }

  #rate(): number | null {
    const first = this.#samples[0]
    const last = this.#samples[this.#samples.length - 1]
    if (!first || !last || last.time - first.time < 2 * EVERY_MS || last.loaded === first.loaded) return null
    return (1000 * (last.loaded - first.loaded)) / (last.time - first.time)
  }
}
