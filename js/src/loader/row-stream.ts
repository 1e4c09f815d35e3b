// The ranges of weights that the engine wants, in order, read ahead: several requests at a time, and a bounded number of chunks in memory.
import { CHUNK_BYTES } from './chunk.js'
import { pieces, type ModelFiles, type Origin, type Range } from './chunks.js'
import { QwasmError } from '../errors.js'

const RUN = 12 // chunks that one request asks for: 6 MiB, so that its round trip and its buffers cost little
const AHEAD = 40 // chunks in memory, 20 MiB; a range of 8 MiB needs up to 17 of them at once

export type OnBytes = (file: string, count: number, origin: Origin) => void

/** A chunk on its way to the ranges that share it. */
class Chunk {
  readonly file: string
  readonly index: number
  /** Ranges that still need it, and bytes of it that they need. */
  uses = 0
  wanted = 0
  readonly arrival: Promise<Uint8Array<ArrayBuffer>>
  asked = false
  settled = false
  #resolve!: (bytes: Uint8Array<ArrayBuffer>) => void
  #reject!: (error: unknown) => void
  #arrived = 0
  #counted = 0

  constructor(file: string, index: number) {
    this.file = file
    this.index = index
    this.arrival = new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
    this.arrival.catch(() => {}) // the first range that waits for it reports the failure
  }

  /** Bytes that count as progress when `count` more of the chunk have arrived: its share that is wanted, so that all add up to the total. */
  progress(count: number): number {
    this.#arrived = Math.min(this.#arrived + count, CHUNK_BYTES)
    return this.#count(Math.floor((this.wanted * this.#arrived) / CHUNK_BYTES))
  }

  /** The same for what is missing when it is there. */
  resolve(bytes: Uint8Array<ArrayBuffer>): number {
    this.settled = true
    this.#resolve(bytes)
    return this.#count(this.wanted)
  }

  reject(error: unknown): void {
    this.#reject(error)
  }

  #count(counted: number): number {
    const more = counted - this.#counted
    this.#counted = counted
    return more
  }
}

export class RowStream {
  readonly #files: ModelFiles
  readonly #ranges: readonly Range[]
  readonly #maxRequests: number
  readonly #onBytes: OnBytes
  readonly #chunks = new Map<string, Chunk>()
  readonly #waiting: Chunk[] // not asked for yet, in the order of use
  #next = 0
  #active = 0
  #inMemory = 0
  #wanted: Chunk | undefined

  /** `ranges`: in the order in which they will be taken. */
  constructor(files: ModelFiles, ranges: readonly Range[], maxRequests: number, onBytes: OnBytes) {
    this.#files = files
    this.#ranges = ranges
    this.#maxRequests = maxRequests
    this.#onBytes = onBytes
    for (const range of ranges) {
      for (const { key, index, start, end } of pieces(range)) {
        let chunk = this.#chunks.get(key)
        if (!chunk) this.#chunks.set(key, (chunk = new Chunk(range.file, index)))
        chunk.uses++
        chunk.wanted += end - start
      }
    }
    this.#waiting = [...this.#chunks.values()]
    this.#start()
  }

  /** The bytes of the next range, in parts, while `use` runs. */
  async take(use: (parts: Uint8Array[]) => Promise<void>): Promise<void> {
    const range = this.#ranges[this.#next++]!
    const parts: Uint8Array[] = []
    for (const { key, start, end } of pieces(range)) {
      const chunk = this.#chunks.get(key)!
      this.#wanted = chunk
      this.#start()
      parts.push((await chunk.arrival).subarray(start, end))
    }
    await use(parts)
    for (const { key } of pieces(range)) await this.#release(key)
    this.#start()
  }

  async #release(key: string): Promise<void> {
    const chunk = this.#chunks.get(key)!
    if (--chunk.uses > 0) return
    this.#chunks.delete(key)
    this.#inMemory--
    this.#files.giveBack(await chunk.arrival)
  }

  #start(): void {
    // What is wanted now comes also where a range is larger than all that may be in memory.
    const more = () => this.#inMemory + RUN <= AHEAD || this.#wanted?.asked === false
    while (this.#waiting.length > 0 && this.#active < this.#maxRequests && more()) void this.#runNext()
  }

  async #runNext(): Promise<void> {
    const run = this.#cutRun()
    const [{ file, index: first }] = run as [Chunk]
    this.#active++
    this.#inMemory += run.length
    try {
      const missing = await this.#files.run(file, first, run.length, {
        onBytes: (index, count, origin) => this.#onBytes(file, run[index - first]?.progress(count) ?? 0, origin),
        take: (index, bytes, origin) => this.#onBytes(file, run[index - first]?.resolve(bytes) ?? 0, origin),
      })
      const cut = run.find((chunk) => !chunk.settled)
      if (missing) throw new QwasmError('missing', `${this.#files.place(file)} was there before and is missing now.`)
      if (cut) throw new QwasmError('invalid_file', `${this.#files.place(file)} ends before byte ${cut.index * CHUNK_BYTES}, though its header names more.`)
    } catch (error) {
      for (const chunk of run) chunk.reject(error)
      this.#waiting.length = 0 // the load fails; nothing more is asked for
    } finally {
      this.#active--
    }
    this.#start()
  }

  /** The next chunks that one request can get: consecutive ones of a file, all of them here or none. */
  #cutRun(): Chunk[] {
    const { file, index } = this.#waiting[0]!
    const here = this.#files.isHere(file, index)
    let count = 1
    for (; count < RUN; count++) {
      const next = this.#waiting[count]
      if (next?.file !== file || next.index !== index + count || this.#files.isHere(file, next.index) !== here) break
    }
    const run = this.#waiting.splice(0, count)
    for (const chunk of run) chunk.asked = true
    return run
  }
}
