// A model in a folder behind a URL, by byte ranges. Only bytes that are proven to stand at the asked offset are used.
import { QwasmError } from '../errors.js'
import { Answer } from './answer.js'
import { Gate } from './gate.js'
import { Attempts, Passing, PATIENCE, type Patience } from './retry.js'
import { BEGINNING_BYTES, difference, mergedState, refuseForeign, SourceChanged } from './source.js'
import type { FileState, Source } from './source.js'
import { WholeBody } from './whole-body.js'

/** Of an answer that does not tell its length, so many bytes are kept back until its end proves it. */
const KEPT_BACK_BYTES = 16 << 20

export interface UrlOptions {
  /**
   * Sent with every request. A redirect to another origin takes them along, except Authorization, which browsers and Node.js
   * leave out there: a token belongs into that one.
   */
  headers?: Record<string, string>
  gate?: Gate
  patience?: Patience
}

/** What is known of a file. */
interface Known {
  state?: FileState
  /** There where the server does not serve ranges of this file. */
  whole?: WholeBody
}

/** A read on its way: `position` is where the next byte belongs that `write` gets. */
interface Reading {
  readonly file: string
  readonly known: Known
  position: number
  readonly end: number
  /** What the answers tell that the bytes came from. */
  state?: FileState
  readonly write: (part: Uint8Array) => void
}

type Outcome = 'done' | 'more' | 'missing' | 'no ranges'

export class UrlFolder implements Source {
  readonly #base: URL
  readonly #headers: Record<string, string>
  readonly #gate: Gate
  readonly #patience: Patience
  readonly #attempts: Attempts
  readonly #files = new Map<string, Known>()

  constructor(baseUrl: string, { headers = {}, gate = new Gate(), patience = PATIENCE }: UrlOptions = {}) {
    this.#base = new URL(baseUrl)
    this.#headers = headers
    this.#gate = gate
    this.#patience = patience
    this.#attempts = new Attempts(patience, gate)
  }

  place(file: string): string {
    const url = new URL(file.split('/').map(encodeURIComponent).join('/'), this.#base)
    url.search = this.#base.search // signed URLs carry their key there
    return url.href
  }

  stat(file: string, attempts?: number): Promise<FileState | 'missing'> {
    return this.#attempts.run(() => this.#stat(file, this.#known(file)), attempts)
  }

  async read(file: string, offset: number, length: number, write: (part: Uint8Array) => void): Promise<FileState | 'missing'> {
    const known = this.#known(file)
    const reading: Reading = { file, known, position: offset, end: length === 0 ? Infinity : offset + length, write }
    const attempts = (attempt: () => Promise<Outcome>) => this.#attempts.run(attempt, undefined, () => reading.position)
    let outcome: Outcome = known.whole ? 'no ranges' : await attempts(() => this.#byRanges(reading))
    if (outcome === 'no ranges') {
      const whole = (known.whole ??= new WholeBody())
      outcome = await whole.inTurn(() => attempts(() => this.#fromWhole(whole, reading)))
    }
    if (outcome === 'missing') return 'missing'
    const changed = difference(reading.state!, known.state!) // another read met a newer state meanwhile
    if (changed) throw this.#changed(file, changed)
    return mergedState(known.state, reading.state!)
  }

  async close(): Promise<void> {
    for (const { whole } of this.#files.values()) whole?.close()
  }

  #known(file: string): Known {
    let known = this.#files.get(file)
    if (!known) this.#files.set(file, (known = {}))
    return known
  }

  /**
   * Asks for a file, or for a range of it. Not through the HTTP cache: Chromium's keeps one writer for a URL and asked the server
   * for 70 % of parallel ranges twice, and models have a cache of their own.
   */
  #ask(file: string, range?: string): Promise<Answer> {
    const headers = range === undefined ? this.#headers : { ...this.#headers, Range: range }
    return Answer.to(this.place(file), { headers, cache: 'no-store' }, this.#gate, this.#patience)
  }

  async #stat(file: string, known: Known): Promise<FileState | 'missing'> {
    let answer = await this.#ask(file, 'bytes=0-0')
    const range = answer.range()
    const proven = answer.status === 206 ? range?.start === 0 : answer.status === 416 && range?.total === 0
    if (!answer.missing && !proven) {
      known.whole ??= new WholeBody()
      if (answer.status !== 200) {
        answer.close()
        answer = await this.#ask(file)
      }
    }
    const state = answer.missing ? 'missing' : await this.#begin(answer, file, known)
    if (answer.status === 206) await answer.skip(2).catch(() => {}) // to its end, so that the connection is used again
    answer.close()
    return state
  }

  /** Looks at an answer that begins with the file's first byte: whether it is the model's file, and in its known state. */
  async #begin(answer: Answer, file: string, known: Known, reading?: Reading): Promise<FileState> {
    try {
      if (answer.status === 200) refuseForeign(this.place(file), file, await answer.peek(BEGINNING_BYTES), answer.state())
      return this.#note(answer.state(), file, known, reading)
    } catch (error) {
      answer.close()
      throw error
    }
  }

  /** Keeps what an answer tells of a file, if it agrees with what is known. */
  #note(now: FileState, file: string, known: Known, reading?: Reading): FileState {
    for (const before of [known.state, reading?.state]) {
      const changed = before && difference(before, now)
      if (!changed) continue
      known.state = now
      known.whole?.close()
      throw this.#changed(file, changed)
    }
    known.state = mergedState(known.state, now)
    if (reading) reading.state = mergedState(reading.state, now)
    return known.state
  }

  #changed(file: string, how: string): SourceChanged {
    return new SourceChanged(file, `${this.place(file)} changed while it was loaded: ${how}.`)
  }

  async #byRanges(reading: Reading): Promise<Outcome> {
    let outcome: Outcome = 'more'
    while (outcome === 'more' && reading.position < reading.end) {
      // A whole file is asked for as such at first: then servers may compress it.
      const all = reading.position === 0 && reading.end === Infinity
      const range = `bytes=${reading.position}-${reading.end === Infinity ? '' : reading.end - 1}`
      const answer = await this.#ask(reading.file, all ? undefined : range)
      if (answer.missing) outcome = this.#missing(answer, reading)
      else if (answer.status === 200) outcome = await this.#takeWhole(answer, reading, all)
      else if (answer.status === 206) outcome = await this.#takeRange(answer, reading)
      else outcome = this.#takeNothing(answer, reading)
    }
    return outcome === 'more' ? 'done' : outcome
  }

  #missing(answer: Answer, { state, known }: Reading): 'missing' {
    answer.close()
    if (!state && !known.state) return 'missing'
    throw new QwasmError('http', `${answer.url}: the file was there before, and now the server answers ${answer.status}.`, { status: answer.status })
  }

  /** A body that begins at 0. Where a range was asked, it and those to come are read from it. */
  async #takeWhole(answer: Answer, reading: Reading, all: boolean): Promise<Outcome> {
    const { file, known } = reading
    // A body that says to be a part is not the whole, whatever its status.
    if (!all && answer.header('Content-Range') !== null) {
      answer.close()
      return 'no ranges'
    }
    await this.#begin(answer, file, known, reading)
    if (all) return this.#pour(answer, reading)
    if (known.whole) answer.close()
    else known.whole = new WholeBody(answer)
    return 'no ranges'
  }

  /** A part of the file, if it is proven to be the asked one. A server may send less than was asked. */
  async #takeRange(answer: Answer, reading: Reading): Promise<Outcome> {
    const range = answer.range()
    const count = range ? range.end + 1 - range.start : -1
    const length = answer.header('Content-Length')
    const contradicts = length === null ? count > KEPT_BACK_BYTES : Number(length) !== count
    if (range?.start !== reading.position || contradicts || answer.header('Content-Encoding') !== null) {
      answer.close()
      return 'no ranges'
    }
    try {
      this.#note(answer.state(), reading.file, reading.known, reading)
      if (length === null) {
        // Only the end of such a body proves that it is the range it says to be.
        const there = (await answer.peek(count + 1)).length
        if (there > count) return 'no ranges'
        if (there < count) throw cutOff(answer, there, count)
      }
      const until = Math.min(range.end + 1, reading.end)
      for (let part; reading.position < until; hand(part, reading)) {
        part = await answer.next(until - reading.position)
        if (!part) throw cutOff(answer, answer.taken, count)
      }
      if (until === range.end + 1) await answer.next(1) // a body that is read to its end leaves its connection for the next
      return until === range.total ? 'done' : 'more'
    } finally {
      answer.close()
    }
  }

  /** 416: the file ends before the asked place, if that is proven. */
  #takeNothing(answer: Answer, reading: Reading): Outcome {
    answer.close()
    const now = answer.state()
    const size = now.size >= 0 ? now.size : (reading.known.state?.size ?? -1)
    if (size < 0 || size > reading.position) return 'no ranges'
    this.#note({ ...now, size }, reading.file, reading.known, reading)
    return 'done'
  }

  async #fromWhole(whole: WholeBody, reading: Reading): Promise<Outcome> {
    const { file, known, position } = reading
    // Bodies that nobody reads would hold the few connections that a browser opens to one server.
    for (const { whole: other } of this.#files.values()) if (other !== whole && other?.idle) other.close()
    const answer = await whole.at(position, async () => {
      const opened = await this.#ask(file)
      if (opened.status === 200) await this.#begin(opened, file, known)
      return opened
    })
    if (answer.status === 200) {
      this.#note(answer.state(), file, known, reading)
      return this.#pour(answer, reading)
    }
    if (answer.missing) return this.#missing(answer, reading)
    answer.close()
    throw new QwasmError('http', `${answer.url}: the whole file was asked, but the status is ${answer.status}.`)
  }

  /** Hands over a whole body's bytes from where it stands. */
  async #pour(answer: Answer, reading: Reading): Promise<Outcome> {
    const { file, known, end } = reading
    const size = known.state?.size ?? -1
    const until = size < 0 ? end : Math.min(end, size)
    while (reading.position < until) {
      const part = await answer.next(until - reading.position)
      if (part) hand(part, reading)
      else if (size >= 0) throw cutOff(answer, answer.taken, size)
      else {
        this.#note({ ...answer.state(), size: answer.taken }, file, known, reading)
        return 'done'
      }
    }
    if (size >= 0 && end > size && (await answer.next(1))) {
      answer.close()
      throw new QwasmError('http', `${answer.url}: the body goes on after the file's ${size} bytes.`)
    }
    return 'done'
  }
}

function hand(part: Uint8Array, reading: Reading): void {
  reading.write(part)
  reading.position += part.length
}

function cutOff(answer: Answer, there: number, expected: number): Passing {
  answer.close()
  return new Passing('network', `${answer.url}: the connection ended after ${there} of ${expected} bytes.`)
}
