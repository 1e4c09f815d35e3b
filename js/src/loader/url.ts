// A model in a folder behind a URL, by byte ranges. Only bytes that are proven to stand at the asked offset are used.
import { QwasmError } from '../errors.js'
import { snippet, type Arrived, type Receiver, type Source } from './source.js'

const READ_BYTES = 64 * 1024
const RETRY_MS = [250, 1000] // after a lost connection; an answer of the server is never asked for again

export class UrlFolder implements Source {
  readonly #base: URL
  readonly #headers: Record<string, string>
  readonly #bodies = new Map<string, WholeBody>()

  /** `headers` are sent with every request; fetch drops Authorization where it is redirected to another origin. */
  constructor(url: string, { headers = {} }: { headers?: Record<string, string> } = {}) {
    this.#base = new URL(url)
    this.#headers = headers
  }

  place(file: string): string {
    const url = new URL(file.split('/').map(encodeURIComponent).join('/'), this.#base)
    url.search = this.#base.search // signed URLs carry their key there
    return url.href
  }

  async read(file: string, offset: number, length: number, receiver: Receiver): Promise<Arrived | 'missing'> {
    const body = this.#bodies.get(file)
    if (body) return body.read(offset, length, receiver)
    return withRetries(() => (length === 0 ? this.#whole(file, receiver) : this.#range(file, offset, length, receiver)))
  }

  async close(): Promise<void> {
    for (const body of this.#bodies.values()) body.cancel()
  }

  async #whole(file: string, receiver: Receiver): Promise<Arrived | 'missing'> {
    const response = await request(this.place(file), { headers: this.#headers })
    if (response === 'missing') return 'missing'
    const bytes = await new BodyReader(response).takeAll(receiver)
    return { bytes, fileSize: bytes.length, status: response.status }
  }

  async #range(file: string, offset: number, length: number, receiver: Receiver): Promise<Arrived | 'missing'> {
    const url = this.place(file)
    // Not through the HTTP cache: Chromium's keeps one writer for a URL and asked the server for 70 % of parallel ranges twice.
    const headers = { ...this.#headers, Range: `bytes=${offset}-${offset + length - 1}` }
    const response = await request(url, { headers, cache: 'no-store' })
    if (response === 'missing') return 'missing'
    const range = contentRange(response)
    if (response.status === 416) {
      void response.body?.cancel()
      return { bytes: new Uint8Array(0), fileSize: range?.total ?? -1 }
    }
    if (response.status === 206 && range?.start === offset && !response.headers.get('Content-Encoding')) {
      const expected = Math.min(length, range.end + 1 - offset)
      const reader = new BodyReader(response)
      const bytes = await reader.take(expected, receiver)
      reader.cancel()
      if (bytes.length < expected)
        throw new QwasmError('network', `${url}: the connection ended after ${bytes.length} of ${expected} bytes.`)
      return { bytes, fileSize: range.total, status: response.status }
    }
    // The whole body (200), another range than asked, or one whose place is hidden: read on from a body that begins at 0.
    const known = this.#bodies.get(file)
    const whole = known ?? new WholeBody(url, this.#headers, response.status === 200 ? response : undefined)
    if (known || response.status !== 200) void response.body?.cancel()
    this.#bodies.set(file, whole)
    return whole.read(offset, length, receiver)
  }
}

/** A file's one open body, for servers that know no ranges: read forwards, opened anew to go back. */
class WholeBody {
  readonly #url: string
  readonly #headers: Record<string, string>
  #reader: BodyReader | undefined
  #position = 0
  #turn: Promise<unknown> = Promise.resolve()

  constructor(url: string, headers: Record<string, string>, response: Response | undefined) {
    this.#url = url
    this.#headers = headers
    if (response) this.#reader = new BodyReader(response)
  }

  /** Reads come one after the other, in the order in which they were asked. */
  read(offset: number, length: number, receiver: Receiver): Promise<Arrived> {
    const read = this.#turn.then(() => withRetries(() => this.#read(offset, length, receiver)))
    this.#turn = read.catch(() => {})
    return read
  }

  cancel(): void {
    this.#reader?.cancel()
    this.#reader = undefined
  }

  async #read(offset: number, length: number, receiver: Receiver): Promise<Arrived> {
    if (this.#position > offset) this.cancel()
    try {
      if (!this.#reader) await this.#open()
      const reader = this.#reader!
      this.#position += await reader.discard(offset - this.#position)
      const bytes = length === 0 ? await reader.takeAll(receiver) : await reader.take(length, receiver)
      this.#position += bytes.length
      return { bytes, fileSize: -1, status: 200 }
    } catch (error) {
      this.cancel() // where a broken body stands is not known any more
      throw error
    }
  }

  async #open(): Promise<void> {
    const response = await request(this.#url, { headers: this.#headers })
    if (response === 'missing' || response.status !== 200) {
      throw new QwasmError(
        'http',
        `${this.#url}: the whole file was asked, but the status is ${response === 'missing' ? 404 : response.status}.`
      )
    }
    this.#reader = new BodyReader(response)
    this.#position = 0
  }
}

type Read = () => Promise<ReadableStreamReadResult<Uint8Array> | { done: true; value?: undefined }>

/**
 * How to read a body's next bytes: into one buffer again and again where bodies are byte streams (Chromium, Firefox, Node.js), else
 * chunk by chunk. As garbage, chunks grew to 500 MB while Chromium loaded 1.2 GB.
 */
function readerOf(body: ReadableStream<Uint8Array<ArrayBuffer>>): { read: Read; cancel: () => Promise<void> } {
  try {
    const reader = body.getReader({ mode: 'byob' })
    let room = new ArrayBuffer(READ_BYTES)
    const read: Read = async () => {
      const result = await reader.read(new Uint8Array(room))
      if (result.value) room = result.value.buffer as ArrayBuffer
      return result.done ? { done: true } : result
    }
    return { read, cancel: () => reader.cancel() }
  } catch {
    const reader = body.getReader()
    return { read: () => reader.read(), cancel: () => reader.cancel() }
  }
}

/** Takes exact counts of bytes out of a body. What it gives out is valid until its next read. */
class BodyReader {
  readonly #reader: ReturnType<typeof readerOf> | undefined
  readonly #url: string
  #rest: Uint8Array = new Uint8Array(0)

  constructor(response: Response) {
    this.#reader = response.body ? readerOf(response.body as ReadableStream<Uint8Array<ArrayBuffer>>) : undefined
    this.#url = response.url
  }

  /** The next `length` bytes, or fewer where the body ends. */
  async take(length: number, receiver: Receiver): Promise<Uint8Array> {
    const bytes = receiver.room(length)
    let taken = 0
    for (let part; taken < length && (part = await this.#next(length - taken)); taken += part.length) {
      bytes.set(part, taken)
      receiver.onBytes(part.length)
    }
    return bytes.subarray(0, taken)
  }

  async takeAll(receiver: Receiver): Promise<Uint8Array> {
    const parts: Uint8Array[] = []
    for (let part; (part = await this.#next(Infinity));) {
      parts.push(part.slice())
      receiver.onBytes(part.length)
    }
    return new Uint8Array(await new Blob(parts as BlobPart[]).arrayBuffer())
  }

  async discard(length: number): Promise<number> {
    let discarded = 0
    for (let part; discarded < length && (part = await this.#next(length - discarded));) discarded += part.length
    return discarded
  }

  cancel(): void {
    this.#reader?.cancel().catch(() => {})
  }

  async #next(most: number): Promise<Uint8Array | undefined> {
    if (this.#rest.length === 0) {
      try {
        const { done, value } = (await this.#reader?.read()) ?? { done: true }
        if (done || !value) return undefined
        this.#rest = value
      } catch (cause) {
        throw new QwasmError('network', `${this.#url}: the connection was lost: ${(cause as Error).message}`, { cause })
      }
    }
    const part = this.#rest.subarray(0, most)
    this.#rest = this.#rest.subarray(part.length)
    return part
  }
}

/** An answer of 200, 206 or 416; 'missing' for 404 and 410; a QwasmError for anything else. */
async function request(url: string, init: RequestInit = {}): Promise<Response | 'missing'> {
  let response: Response
  try {
    response = await fetch(url, init)
  } catch (cause) {
    const detail = [(cause as Error).message, ((cause as Error).cause as Error | undefined)?.message].filter(Boolean).join(': ')
    throw new QwasmError('network', `${url} could not be fetched: ${detail}`, { cause })
  }
  if (response.status === 404 || response.status === 410) {
    void response.body?.cancel()
    return 'missing'
  }
  if ([200, 206, 416].includes(response.status)) return response
  const body = await response.arrayBuffer().catch(() => new ArrayBuffer(0))
  const said = snippet(new Uint8Array(body))
  const status = `${response.status} ${response.statusText}`.trim()
  const message = `${url}: the server answered ${status}${said === '' ? '' : `, with "${said}"`}.`
  throw new QwasmError('http', message, { status: response.status })
}

/** Content-Range, where the server sends it and lets us see it: bytes 0-99/1000, or bytes * over 1000 beside 416. */
function contentRange(response: Response): { start: number; end: number; total: number } | undefined {
  const match = /^bytes (?:(\d+)-(\d+)|\*)\/(\d+|\*)$/.exec(response.headers.get('Content-Range') ?? '')
  if (!match) return undefined
  const [, start = '-1', end = '-1', total = '*'] = match
  return { start: Number(start), end: Number(end), total: total === '*' ? -1 : Number(total) }
}

async function withRetries<T>(attempt: () => Promise<T>): Promise<T> {
  for (const pause of RETRY_MS) {
    try {
      return await attempt()
    } catch (error) {
      if (!(error instanceof QwasmError) || error.code !== 'network') throw error
      await new Promise((resolve) => setTimeout(resolve, pause))
    }
  }
  return attempt()
}
