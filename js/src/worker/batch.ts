// The running calls' way to the engine: their steps are one batch, and slices of prompts take turns with the steps. Short enough, each, that
// messages get in between.
import { abortError } from '../errors.js'
import type { QwasmError } from '../errors.js'
import type { Session } from '../runtime/session.js'
import type { Control } from './queue.js'

// A slice reads all weights once. Qwen3-0.6B in q4 on 2 threads: 157 tokens/s by 16, 173 by 32, 183 by 64. A caller's abort takes effect at
// once; what waits for the slice's end are other calls and `stop()`. Where others wait for their next token, slices are shorter.
const SLICE_MS = 400
const SHARED_SLICE_MS = 80
const MOST_TOKENS = 64
const LEAST_TOKENS = 8
const TILE = 4 // the kernels take tokens by fours

/** Chooses how many prompt tokens to run at once, from how long the last ones took. */
export class SlicePacer {
  #tokens = 2 * LEAST_TOKENS
  #msPerToken = 0

  next(budgetMs: number): number {
    if (this.#msPerToken === 0) return this.#tokens
    const fitting = Math.floor(budgetMs / this.#msPerToken / TILE) * TILE
    return Math.max(LEAST_TOKENS, Math.min(fitting, 2 * this.#tokens, MOST_TOKENS))
  }

  took(tokens: number, ms: number): void {
    this.#tokens = tokens
    this.#msPerToken = Math.max(ms, 0.1) / tokens
  }
}

interface Turn {
  control: Control
  run: () => void
  /** Ends it without running. */
  resolve: (nothing: undefined) => void
  reject: (error: unknown) => void
}

interface Step extends Omit<Turn, 'run'> {
  session: Session
  resolve: (id: number | undefined) => void
}

/** The next token of each session, or why it has none. */
type StepAll = (sessions: readonly Session[]) => (number | QwasmError)[]

export class Batch {
  readonly #stepAll: StepAll
  readonly #pause: () => Promise<void>
  readonly #pacer = new SlicePacer()
  #steps: Step[] = []
  readonly #turns: Turn[] = []
  #running = false

  /** `pause` lets waiting messages in. */
  constructor(stepAll: StepAll, pause: () => Promise<void>) {
    this.#stepAll = stepAll
    this.#pause = pause
  }

  /** The session's next token; undefined where the call was stopped before. */
  step(session: Session, control: Control): Promise<number | undefined> {
    return new Promise((resolve, reject) => {
      this.#steps.push({ session, control, resolve, reject })
      void this.#run()
    })
  }

  /** Does something that takes long between the steps; undefined where the call was stopped before. */
  turn<T>(control: Control, work: () => T): Promise<T | undefined> {
    return new Promise((resolve, reject) => {
      this.#turns.push({ control, run: () => resolve(work()), resolve, reject })
      void this.#run()
    })
  }

  /** Runs a prompt. `slice` runs so many of its tokens and says how many remain. */
  async prefill(control: Control, slice: (tokens: number) => number): Promise<void> {
    for (let remaining: number | undefined = 1; remaining;) remaining = await this.turn(control, () => this.#timed(slice))
  }

  #timed(slice: (tokens: number) => number): number {
    const tokens = this.#pacer.next(this.#steps.length > 0 ? SHARED_SLICE_MS : SLICE_MS)
    const start = performance.now()
    const remaining = slice(tokens)
    if (remaining > 0) this.#pacer.took(tokens, performance.now() - start)
    return remaining
  }

  /** While a pause lasts, the calls take what they were given and ask for their next step or turn. */
  async #run(): Promise<void> {
    if (this.#running) return
    this.#running = true
    while (this.#steps.length > 0 || this.#turns.length > 0) {
      this.#runSteps(this.#steps.splice(0).filter(goesOn))
      await this.#pause()
      const turn = this.#turns.shift()
      if (!turn) continue
      if (goesOn(turn)) attempt(turn.run, turn.reject)
      await this.#pause()
    }
    this.#running = false
  }

  #runSteps(steps: Step[]): void {
    if (steps.length === 0) return
    const run = () => {
      const results = this.#stepAll(steps.map(({ session }) => session))
      results.forEach((result, i) => (typeof result === 'number' ? steps[i]!.resolve(result) : steps[i]!.reject(result)))
    }
    attempt(run, (error) => steps.forEach(({ reject }) => reject(error)))
  }
}

/** Ends what was stopped or aborted before its turn came. */
function goesOn({ control, resolve, reject }: Pick<Turn, 'control' | 'resolve' | 'reject'>): boolean {
  if (control.aborted) reject(abortError())
  else if (control.stopped) resolve(undefined)
  else return true
  return false
}

function attempt(run: () => void, failed: (error: unknown) => void): void {
  try {
    run()
  } catch (error) {
    failed(error)
  }
}
