// The sequences that are kept, so that a prompt finds what it has in common with one of them already computed.
import { QwasmError } from '../errors.js'
import type { Engine } from '../runtime/core.js'
import { BLOCK_TOKENS, type Session } from '../runtime/session.js'

/** Tokens that are not worth a sequence of their own. */
const FEW = 16

export interface Sequence {
  session: Session
  /** Of a caller's own session: never taken for another call, never freed to make room. */
  readonly owned: boolean
  busy: boolean
}

export interface Limits {
  /** Sequences that are kept besides owned ones. */
  most: number
  /** What the idle ones of them hold together, unless there is one only. */
  tokens: number
  /** Of a block of the cache. */
  blockBytes: number
}

export class Sequences {
  readonly #engine: Engine
  readonly #limits: Limits
  /** The last used one last. */
  readonly #all: Sequence[] = []

  constructor(engine: Engine, limits: Limits) {
    this.#engine = engine
    this.#limits = limits
  }

  /** A new sequence of a caller's own. */
  own(): Sequence {
    return this.#add(true)
  }

  /** The sequence for a prompt, `owned` or the best of the others, with as much of the prompt as some sequence has. It is busy until end(). */
  begin(prompt: Int32Array, owned?: Sequence): Sequence {
    const sequence = owned ?? this.#choose(prompt)
    sequence.busy = true
    this.#borrow(sequence, prompt)
    return sequence
  }

  /** The next tokens, as one batch; those that lack memory try again with the room of sequences that nobody uses. */
  step(sessions: readonly Session[]): (number | QwasmError)[] {
    const results = this.#engine.step(sessions)
    const failed = [...results.keys()].filter((i) => this.#makeRoom(results[i]))
    if (failed.length === 0) return results
    const again = this.step(failed.map((i) => sessions[i]!))
    failed.forEach((i, at) => (results[i] = again[at]!))
    return results
  }

  end(sequence: Sequence): void {
    sequence.busy = false
    this.#all.push(this.#all.splice(this.#all.indexOf(sequence), 1)[0]!)
    const tokens = () => this.#idle.reduce((sum, { session }) => sum + session.cached().length, 0)
    while (this.#idle.length > 1 && tokens() > this.#limits.tokens) this.free(this.#idle[0]!)
  }

  /** Gives the sequence a new session that `fill` fills; where that fails, it keeps the one it has. */
  async replace(sequence: Sequence, fill: (fresh: Session) => Promise<void>): Promise<void> {
    const fresh = this.withRoom(() => this.#engine.newSession())
    try {
      await fill(fresh)
    } catch (error) {
      fresh.free()
      throw error
    }
    sequence.session.free()
    sequence.session = fresh
  }

  free(sequence: Sequence): void {
    this.#all.splice(this.#all.indexOf(sequence), 1)
    sequence.session.free()
  }

  /** Tries once more, with the room of a sequence that nobody uses, as often as there is one. */
  withRoom<T>(work: () => T): T {
    for (;;) {
      try {
        return work()
      } catch (error) {
        if (!this.#makeRoom(error)) throw error
      }
    }
  }

  /** Where it was memory that lacked: frees the sequence that was not used for longest, if there is one. */
  #makeRoom(error: unknown): boolean {
    const oldest = this.#idle[0]
    if (!oldest || !(error instanceof QwasmError) || error.code !== 'out_of_memory') return false
    this.free(oldest)
    return true
  }

  get #idle(): Sequence[] {
    return this.#all.filter(({ owned, busy }) => !owned && !busy)
  }

  #add(owned: boolean): Sequence {
    const sequence = { session: this.withRoom(() => this.#engine.newSession()), owned, busy: false }
    this.#all.push(sequence)
    return sequence
  }

  /**
   * The idle sequence with the longest common prefix, unless more of it would be lost than is gained; then a new one, or the one that was not used
   * for longest.
   */
  #choose(prompt: Int32Array): Sequence {
    const best = longest(this.#idle, prompt)
    if (best && best.sequence.session.cached().length - best.common <= Math.max(best.common, FEW)) return best.sequence
    const full = this.#all.filter(({ owned }) => !owned).length >= this.#limits.most
    return (full && this.#idle[0]) || this.#add(false)
  }

  /** Copies what another sequence has of the prompt, even one that is running: 20 µs a token in Qwen3-0.6B, where computing takes 6 ms. */
  #borrow(sequence: Sequence, prompt: Int32Array): void {
    const best = longest(this.#all, prompt)
    if (!best || best.common <= commonPrefix(sequence.session.cached(), prompt) + FEW) return
    try {
      sequence.session.restore(prompt.subarray(0, best.common))
    } catch (error) {
      if (error instanceof QwasmError && error.code === 'out_of_memory') return // without that room, it is computed
      throw error
    }
    const blockOf = ({ session }: Sequence, i: number) => session.block(i, this.#limits.blockBytes)
    for (let i = 0; i * BLOCK_TOKENS < best.common; i++) blockOf(sequence, i).set(blockOf(best.sequence, i))
  }
}

function longest(sequences: readonly Sequence[], prompt: Int32Array): { sequence: Sequence; common: number } | undefined {
  const all = sequences.map((sequence) => ({ sequence, common: commonPrefix(sequence.session.cached(), prompt) }))
  return all.reduce<(typeof all)[0] | undefined>((best, one) => (best && best.common >= one.common ? best : one), undefined)
}

function commonPrefix(a: Int32Array, b: Int32Array): number {
  const length = Math.min(a.length, b.length)
  let at = 0
  while (at < length && a[at] === b[at]) at++
  return at
}
