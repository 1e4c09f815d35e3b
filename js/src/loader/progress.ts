// Counts arriving bytes and says now and then how far the loading is.
import type { LoadProgress } from '../types.js'

const EVERY_MS = 50
const WINDOW_MS = 3000 // the rate is that of the last seconds: long enough to be steady, short enough to follow a change

export class ProgressMeter {
  readonly #report: (progress: LoadProgress) => void
  readonly #files = new Map<string, { loaded: number; total: number }>()
  #phase: LoadProgress['phase'] = 'headers'
  #total = 0
  #loaded = 0
  #lastReport = -Infinity
  #samples: { time: number; loaded: number }[] = []

  constructor(report: (progress: LoadProgress) => void) {
    this.#report = report
  }

  /** Says at once that a phase began in which no weights arrive. */
  enter(phase: 'wait' | 'headers'): void {
    this.#phase = phase
    this.#send('')
  }

  /** What will arrive: bytes by file. Begins the count anew. */
  expect(files: Iterable<readonly [file: string, bytes: number]>): void {
    this.#files.clear()
    this.#total = this.#loaded = 0
    this.#samples = []
    for (const [file, bytes] of files) {
      const known = this.#files.get(file)
      this.#files.set(file, { loaded: 0, total: (known?.total ?? 0) + bytes })
      this.#total += bytes
    }
  }

  add(phase: 'download' | 'verify' | 'prepare', file: string, count: number): void {
    this.#phase = phase
    this.#loaded += count
    const known = this.#files.get(file)
    if (known) known.loaded += count
    const now = performance.now()
    if (now - this.#lastReport < EVERY_MS) return
    this.#lastReport = now
    this.#samples.push({ time: now, loaded: this.#loaded })
    while (this.#samples.length > 2 && now - this.#samples[0]!.time > WINDOW_MS) this.#samples.shift()
    this.#send(file)
  }

  finish(): void {
    this.#phase = 'ready'
    this.#loaded = this.#total
    this.#send('')
  }

  #send(file: string): void {
    const loaded = this.#loaded
    const total = this.#total
    const rate = this.#rate()
    const secondsLeft = rate === null || total === 0 ? null : (total - loaded) / rate
    const { loaded: fileLoaded, total: fileTotal } = this.#files.get(file) ?? { loaded: 0, total: 0 }
    this.#report({ phase: this.#phase, file, fileLoaded, fileTotal, loaded, total, rate, secondsLeft })
  }

  #rate(): number | null {
    const first = this.#samples[0]
    const last = this.#samples[this.#samples.length - 1]
    if (!first || !last || last.time - first.time < 2 * EVERY_MS || last.loaded === first.loaded) return null
    return (1000 * (last.loaded - first.loaded)) / (last.time - first.time)
  }
}
