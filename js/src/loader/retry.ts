// Trying again: after which failures, how often, and how long to wait in between.
import { QwasmError, type QwasmErrorCode } from '../errors.js'
import type { Gate } from './gate.js'

/** How often to try and how long to wait, in milliseconds; tests bring a clock of their own. */
export interface Patience {
  /** Attempts in a row that bring no byte. */
  attempts: number
  /** The same while a server has never answered: an address that is wrong need not be tried for long. */
  attemptsAtFirst: number
  /** The pause after the first failure; each further one doubles it. */
  firstPause: number
  longestPause: number
  /** The longest wait that a server may ask for by Retry-After. */
  longestWait: number
  /** A connection on which nothing comes for so long counts as lost. */
  stall: number
  now(): number
  sleep(ms: number): Promise<void>
  /** From 0 to 1. */
  random(): number
}

export const PATIENCE: Patience = {
  attempts: 6,
  attemptsAtFirst: 3,
  firstPause: 500,
  longestPause: 8000,
  longestWait: 60_000,
  stall: 30_000,
  now: () => Date.now(),
  sleep: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
  random: () => Math.random(),
}

type PassingOptions = ErrorOptions & { status?: number; wait?: number | undefined }

/** A failure that may pass: asking again is worth it. */
export class Passing extends QwasmError {
  /** Milliseconds that the server asks to wait. */
  readonly wait: number

  constructor(code: QwasmErrorCode, message: string, options: PassingOptions = {}) {
    super(code, message, options)
    this.wait = options.wait ?? 0
  }
}

/** What was under way ended because loading is paused: no failure. */
export class Paused extends Error {}

/** Attempts at one server: they wait together while it asks to wait, and while the gate is shut. */
export class Attempts {
  readonly #patience: Patience
  readonly #gate: Gate
  #quietUntil = 0
  #answered = false

  constructor(patience: Patience, gate: Gate) {
    this.#patience = patience
    this.#gate = gate
  }

  /** Runs `attempt` until it succeeds, fails for good, or failed `most` times in a row without a change of `progress`. */
  async run<T>(attempt: () => Promise<T>, most?: number, progress: () => number = () => 0): Promise<T> {
    let failures = 0
    for (;;) {
      await this.#passage()
      const before = progress()
      try {
        const result = await attempt()
        this.#answered = true
        return result
      } catch (error) {
        if (error instanceof Paused) continue
        if (!(error instanceof Passing)) throw error
        this.#answered ||= error.code === 'http' || progress() !== before
        failures = progress() === before ? failures + 1 : 1
        const { attempts, attemptsAtFirst } = this.#patience
        if (failures >= (most ?? (this.#answered ? attempts : attemptsAtFirst))) throw forGood(error, failures === 1 ? '' : ` It was tried ${failures} times.`)
        await this.#pause(failures, error)
      }
    }
  }

  async #passage(): Promise<void> {
    for (;;) {
      await this.#gate.opened()
      const wait = this.#quietUntil - this.#patience.now()
      if (wait <= 0) return
      await this.#patience.sleep(wait)
    }
  }

  async #pause(failures: number, error: Passing): Promise<void> {
    const { firstPause, longestPause, longestWait, now, random, sleep } = this.#patience
    if (error.wait > longestWait) throw forGood(error, ` It asks to wait ${Math.ceil(error.wait / 1000)} s.`)
    if (error.wait > 0) this.#quietUntil = Math.max(this.#quietUntil, now() + error.wait)
    // The jitter keeps requests that failed together from coming back together.
    const pause = Math.min(longestPause, firstPause * 2 ** (failures - 1)) * (0.5 + random() / 2)
    await sleep(pause)
  }
}

function forGood(error: Passing, more: string): QwasmError {
  return new QwasmError(error.code, error.message + more, { cause: error, status: error.status })
}

/** Retry-After as milliseconds from `now` on: it is a count of seconds or a date. */
export function retryAfter(header: string | null, now: number): number | undefined {
  if (header === null) return undefined
  const wait = /^\s*\d+\s*$/.test(header) ? 1000 * Number(header) : Date.parse(header) - now
  return Number.isFinite(wait) ? Math.max(0, wait) : undefined
}
