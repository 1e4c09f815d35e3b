// One answer of a server: its headers, and its body's bytes as they come. Nothing in it waits for ever.
import { QwasmError } from '../errors.js'
import type { Gate } from './gate.js'
import { Passing, Paused, retryAfter, type Patience } from './retry.js'
import { snippet, type FileState } from './source.js'

const READ_BYTES = 64 * 1024
const NOTHING: Uint8Array = new Uint8Array(0)

type Read = () => Promise<{ done: boolean; value?: Uint8Array | undefined }>

/**
 * How to read a body's next bytes: into one buffer again and again where bodies are byte streams (Chromium, Firefox, Node.js), else
 * chunk by chunk. As garbage, chunks grew to 500 MB while Chromium loaded 1.2 GB.
 */
function readerOf(body: ReadableStream<Uint8Array<ArrayBuffer>>): Read {
  try {
    const reader = body.getReader({ mode: 'byob' })
    let room = new ArrayBuffer(READ_BYTES)
    return async () => {
      const { done, value } = await reader.read(new Uint8Array(room))
      if (value) room = value.buffer
      return { done, value }
    }
  } catch {
    const reader = body.getReader()
    return () => reader.read()
  }
}

export class Answer {
  readonly url: string
  readonly #patience: Patience
  readonly #controller = new AbortController()
  readonly #leaveGate: () => void
  #ended: 'paused' | 'stalled' | 'closed' | undefined
  #response: Response | undefined
  #read: Read | undefined
  #rest = NOTHING
  /** Bytes of the body that were taken. */
  taken = 0

  private constructor(url: string, gate: Gate, patience: Patience) {
    this.url = url
    this.#patience = patience
    this.#leaveGate = gate.onPause(() => this.#end('paused'))
  }

  /** Asks a server. An answer that is neither 200, 206, 404, 410 nor 416 is thrown: as Passing where asking again may help. */
  static async to(url: string, init: RequestInit, gate: Gate, patience: Patience): Promise<Answer> {
    const answer = new Answer(url, gate, patience)
    const { signal } = answer.#controller
    const response = await answer.#wait('could not be fetched', () => fetch(url, { ...init, signal }))
    answer.#response = response
    if (response.body) answer.#read = readerOf(response.body as ReadableStream<Uint8Array<ArrayBuffer>>)
    if (![200, 206, 404, 410, 416].includes(response.status)) throw await answer.#refusal()
    return answer
  }

  get status(): number {
    return this.#response!.status
  }

  /** Whether there is no such file. */
  get missing(): boolean {
    return this.status === 404 || this.status === 410
  }

  /** Whether nothing more can be read. */
  get over(): boolean {
    return this.#ended !== undefined
  }

  header(name: string): string | null {
    return this.#response!.headers.get(name)
  }

  /** The next bytes, at most `most`; undefined at the end. They are valid until the next call. */
  async next(most: number): Promise<Uint8Array | undefined> {
    if (this.#rest.length === 0) await this.#fill()
    if (this.#rest.length === 0) return undefined
    const part = this.#rest.subarray(0, most)
    this.#rest = this.#rest.subarray(part.length)
    this.taken += part.length
    return part
  }

  /** The next `count` bytes at least, without taking them; fewer where the body ends or is cut, which further reading tells. */
  async peek(count: number): Promise<Uint8Array> {
    const parts: Uint8Array[] = []
    let length = 0
    try {
      while (this.#rest.length > 0 || parts.length === 0) {
        if (length === 0 && this.#rest.length >= count) return this.#rest
        parts.push(this.#rest.slice()) // reading on uses the buffer again
        length += this.#rest.length
        this.#rest = NOTHING
        if (length >= count) break
        await this.#fill()
      }
    } catch (error) {
      if (length === 0) throw error
    }
    this.#rest = joined(parts)
    return this.#rest
  }

  /** Passes over `count` bytes. */
  async skip(count: number): Promise<void> {
    let left = count
    for (let part; left > 0 && (part = await this.next(left));) left -= part.length
  }

  /** What the answer tells of the file. A compressed body's length is not the file's. */
  state(): FileState {
    const { url, type, redirected, headers, status } = this.#response!
    const compressed = headers.has('Content-Encoding') // of other origins, browsers hide it: texts may be compressed
    const hidden = type === 'cors' && /text|json|xml|javascript/.test(headers.get('Content-Type') ?? '')
    const length = compressed || hidden ? null : headers.get('Content-Length')
    const total = compressed ? undefined : this.range()?.total
    const size = total ?? (status === 200 && length !== null && /^\d+$/.test(length) ? Number(length) : -1)
    const etag = headers.get('ETag')?.replace(/^W\//, '').replace(/[-;]+(gzip|br|zstd|deflate|df)"$/, '"') ?? null
    const origin = redirected && new URL(url).origin !== new URL(this.url).origin ? { origin: new URL(url).origin } : {}
    return { size, etag, lastModified: headers.get('Last-Modified'), status, ...origin }
  }

  /** Content-Range, where the server sends it, lets us see it, and it can be: bytes 0-99/1000, or bytes * over 1000 beside 416. */
  range(): { start: number; end: number; total: number } | undefined {
    const match = /^bytes (?:(\d+)-(\d+)|\*)\/(\d+|\*)$/.exec(this.header('Content-Range') ?? '')
    if (!match) return undefined
    const [, start = '-1', end = '-1', total = '*'] = match
    const range = { start: Number(start), end: Number(end), total: total === '*' ? -1 : Number(total) }
    return range.start > range.end || (range.total >= 0 && range.end >= range.total) ? undefined : range
  }

  close(): void {
    this.#end('closed')
  }

  async #fill(): Promise<void> {
    if (!this.#read) return
    const { done, value } = await this.#wait('the connection was lost', this.#read)
    this.#rest = done || !value ? NOTHING : value
    if (done) {
      this.#read = undefined
      this.#leaveGate()
    }
  }

  /** Does what takes a while, unless nothing comes for too long or loading is paused. */
  async #wait<T>(failed: string, what: () => Promise<T>): Promise<T> {
    const { stall } = this.#patience
    const timer = setTimeout(() => this.#end('stalled'), stall)
    try {
      return await what()
    } catch (cause) {
      const ended = this.#ended
      this.#end('closed')
      if (ended === 'paused') throw new Paused()
      const { message, cause: deeper } = cause as Error & { cause?: Error }
      const detail = [message, deeper?.message].filter(Boolean).join(': ')
      const why = ended === 'stalled' ? `nothing came for ${stall / 1000} s` : `${failed}: ${detail}`
      throw new Passing('network', `${this.url}: ${why}.`, { cause })
    } finally {
      clearTimeout(timer)
    }
  }

  #end(why: 'paused' | 'stalled' | 'closed'): void {
    this.#ended ??= why
    this.#leaveGate()
    this.#controller.abort()
  }

  async #refusal(): Promise<QwasmError> {
    const { status, statusText } = this.#response!
    const said = snippet(await this.peek(300).catch(() => NOTHING))
    this.close()
    const answered = `${status} ${statusText}`.trim() + (said === '' ? '' : `, with "${said}"`)
    const message = `${this.url}: the server answered ${answered}.`
    const mayPass = status === 408 || status === 429 || (status >= 500 && status !== 501 && status !== 505)
    if (!mayPass) return new QwasmError('http', message, { status })
    return new Passing('http', message, { status, wait: retryAfter(this.header('Retry-After'), this.#patience.now()) })
  }
}

function joined(parts: readonly Uint8Array[]): Uint8Array {
  const bytes = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0))
  let filled = 0
  for (const part of parts) {
    bytes.set(part, filled)
    filled += part.length
  }
  return bytes
}
