// Gets a model's files by chunks: from what was kept, else from the source; each is proven before it is used, and kept.
import type { Pack } from '../cache/pack.js'
import { QwasmError } from '../errors.js'
import { CHUNK_BYTES, chunksOf, sha256 } from './chunk.js'
import type { Integrity } from './integrity.js'
import { difference, refuseForeign, type FileState, type Source } from './source.js'

/** How the cache is used, in the words of fetch(). */
export type CacheMode = 'default' | 'no-store' | 'reload' | 'force-cache' | 'only-if-cached'

/** Where a chunk's bytes come from. */
export type Origin = 'kept' | 'source'

export interface Range {
  file: string
  offset: number
  length: number
}

export interface ChunkTaker {
  /** Bytes on their way. */
  onBytes(index: number, count: number, origin: Origin): void
  /** A chunk that was proven. Its room is the taker's until it is given back. */
  take(index: number, bytes: Uint8Array<ArrayBuffer>, origin: Origin): void
}

export interface ModelFilesOptions {
  source: Source
  kept?: Pack | undefined
  integrity?: Integrity | undefined
  mode: CacheMode
}

export class ModelFiles {
  /** Sentences a person should see. */
  readonly notes: string[] = []
  readonly #source: Source
  readonly #kept: Pack | undefined
  readonly #integrity: Integrity | undefined
  readonly #mode: CacheMode
  readonly #states = new Map<string, Promise<FileState | 'missing' | undefined>>()
  readonly #held = new Map<string, { bytes: Uint8Array<ArrayBuffer>; origin: Origin }>()
  #rooms: Uint8Array<ArrayBuffer>[] = []

  constructor({ source, kept, integrity, mode }: ModelFilesOptions) {
    this.#source = source
    this.#kept = kept
    this.#integrity = integrity
    this.#mode = mode
  }

  place(file: string): string {
    return this.#source.place(file)
  }

  /** Why a file is missing, as a sentence's end says it. */
  whereMissing(file: string): string {
    const unnamed = this.#integrity && this.#integrity.size(file) === undefined
    return unnamed ? `the pinned manifest does not name ${file}, so it is not used` : `looked for at ${this.place(file)}`
  }

  /** The chunks of a whole file. */
  async whole(file: string): Promise<Uint8Array[] | 'missing'> {
    const state = await this.state(file)
    if (state === 'missing') return 'missing'
    const parts: Uint8Array[] = []
    const taker: ChunkTaker = { onBytes: () => {}, take: (index, bytes) => void (parts[index] = bytes) }
    const count = state && state.size >= 0 ? chunksOf(state.size) : 0
    const allKept = count > 0 && Array.from({ length: count }, (_, index) => index).every((index) => this.#isKept(file, index))
    if (allKept) {
      await this.run(file, 0, count, taker)
    } else if ((await this.#fetch(file, 0, 0, taker)) === 'missing') {
      return 'missing'
    }
    return parts
  }

  /** A range of a file's beginning, fewer bytes where it ends early. Its chunks are held until weights are read from them. */
  async range(file: string, offset: number, length: number): Promise<Uint8Array[] | 'missing'> {
    const parts: Uint8Array[] = []
    for (const { index, start, end } of pieces({ file, offset, length })) {
      const key = keyOf(file, index)
      const taker: ChunkTaker = { onBytes: () => {}, take: (_, bytes, origin) => void this.#held.set(key, { bytes, origin }) }
      if (!this.#held.has(key) && (await this.run(file, index, 1, taker)) === 'missing') return 'missing'
      parts.push(this.#held.get(key)?.bytes.subarray(start, end) ?? new Uint8Array(0))
    }
    return parts
  }

  /** Chunks `first` … `first + count - 1` of a file, fewer where it ends early. Chunks are taken in any order. */
  async run(file: string, first: number, count: number, taker: ChunkTaker): Promise<'missing' | void> {
    if ((await this.state(file)) === 'missing') return 'missing'
    let fetchFrom = first
    for (let index = first; index <= first + count; index++) {
      if (index < first + count && !(await this.#takeHere(file, index, taker))) continue
      // This one was kept, or is past the end: those before it that were not are fetched together.
      if (index > fetchFrom && (await this.#fetch(file, fetchFrom, index - fetchFrom, taker)) === 'missing') return 'missing'
      fetchFrom = index + 1
    }
  }

  /** Whether a chunk is here already. */
  isHere(file: string, index: number): boolean {
    return this.#held.has(keyOf(file, index)) || this.#isKept(file, index)
  }

  #isKept(file: string, index: number): boolean {
    if (this.#mode === 'reload' || !this.#kept?.has(file, index)) return false
    return !this.#integrity || this.#kept.hash(file, index) === this.#integrity.hash(file, index)
  }

  giveBack(bytes: Uint8Array<ArrayBuffer>): void {
    this.#rooms.push(new Uint8Array(bytes.buffer))
  }

  /** Gives the rooms' memory back at once; left to the garbage collector, it would still be there when the model's first answer needs some. */
  release(): void {
    for (const { buffer } of this.#rooms) (buffer as ArrayBuffer & { transfer?: (length: number) => ArrayBuffer }).transfer?.(0)
    this.#rooms = []
  }

  /**
   * A file's state at its source: by the manifest, or by asking where something of it was kept. Undefined: nothing was kept, and reading
   * it will tell.
   */
  state(file: string): Promise<FileState | 'missing' | undefined> {
    let state = this.#states.get(file)
    if (!state) this.#states.set(file, (state = this.#findState(file)))
    return state
  }

  /** What tells this version of the model's files from others; undefined where that cannot be told. */
  async version(files: readonly string[]): Promise<string | undefined> {
    const states = await Promise.all(files.map(async (file) => [file, await this.#identity(file)] as const))
    if (states.some(([, identity]) => identity === undefined)) return undefined
    return sha256(new TextEncoder().encode(JSON.stringify(states)))
  }

  async #identity(file: string): Promise<unknown> {
    if (this.#integrity) return Array.from({ length: chunksOf(this.#integrity.size(file) ?? 0) }, (_, i) => this.#integrity!.hash(file, i))
    const state = await this.state(file)
    return state && state !== 'missing' && isTold(state) ? [state.size, state.etag, state.lastModified] : undefined
  }

  async #findState(file: string): Promise<FileState | 'missing' | undefined> {
    if (this.#integrity) {
      const size = this.#integrity.size(file)
      if (size === undefined) return 'missing'
      const state = { size, etag: null, lastModified: null }
      if (this.#kept?.state(file)?.size !== size) this.#kept?.begin(file, state)
      return state
    }
    const kept = this.#mode === 'reload' ? undefined : this.#kept?.state(file)
    if (kept !== undefined && (this.#mode === 'force-cache' || this.#mode === 'only-if-cached')) return kept ?? 'missing'
    if (this.#mode === 'only-if-cached') throw new QwasmError('missing', `${this.place(file)} is not in the cache, and nothing else may be used.`)
    return kept === undefined ? undefined : this.#compare(file, kept)
  }

  /** Asks the source whether what was kept is still so. */
  async #compare(file: string, kept: FileState | null): Promise<FileState | 'missing'> {
    const whole = this.#kept?.committed === true
    let now: FileState | 'missing'
    try {
      now = await this.#source.stat(file, whole ? 2 : undefined)
    } catch (error) {
      if (!whole || !(error instanceof QwasmError) || error.code !== 'network') throw error
      const note = 'The source could not be reached; the model comes from the cache as it was kept.'
      if (!this.notes.includes(note)) this.notes.push(note)
      return kept ?? 'missing'
    }
    if (now !== 'missing' && !(kept && isSame(kept, now))) this.#kept?.begin(file, now)
    return now
  }

  async #takeHere(file: string, index: number, { onBytes, take }: ChunkTaker): Promise<boolean> {
    const held = this.#held.get(keyOf(file, index))
    if (held) {
      this.#held.delete(keyOf(file, index))
      take(index, held.bytes, held.origin)
      return true
    }
    if (!this.#isKept(file, index)) return false
    const room = this.#room()
    const bytes = await this.#kept!.read(file, index, room)
    if (!bytes) {
      this.giveBack(room)
      return false
    }
    onBytes(index, bytes.length, 'kept')
    take(index, bytes, 'kept')
    return true
  }

  /** Fetches `count` chunks, or with 0 the whole file. */
  async #fetch(file: string, first: number, count: number, taker: ChunkTaker): Promise<'missing' | void> {
    const known = await this.state(file)
    const begun = known && known !== 'missing' ? known : undefined
    const cut = new Cutter(first, () => this.#room(), taker.onBytes)
    const finished: Promise<void>[] = []
    let failure: unknown
    const finish = (state: FileState) => {
      for (const { index, bytes } of cut.complete()) {
        const proven = this.#finish(file, index, bytes, state, taker)
        proven.catch((error) => (failure ??= error)) // ends the reading below
        finished.push(proven)
      }
    }
    const state = await this.#source.read(file, first * CHUNK_BYTES, count * CHUNK_BYTES, (part) => {
      if (failure) throw failure as Error
      cut.push(part)
      if (begun) finish(begun) // else its state is known only when it has come
    })
    if (state === 'missing') {
      this.#kept?.begin(file, null)
      return 'missing'
    }
    if (!begun) {
      this.#states.set(file, Promise.resolve(state))
      this.#kept?.begin(file, state)
    }
    cut.end()
    finish(begun ?? state)
    await Promise.all(finished)
    const expected = this.#integrity?.size(file)
    if (expected !== undefined && count === 0 && cut.length !== expected) this.#integrity!.check(file, cut.next, 'the end of the file', this.place(file))
  }

  /** Proves a chunk that came, and keeps it. */
  async #finish(file: string, index: number, bytes: Uint8Array<ArrayBuffer>, state: FileState, taker: ChunkTaker): Promise<void> {
    if (index === 0) refuseForeign(this.place(file), file, bytes, state)
    const keep = this.#kept && (this.#integrity || isTold(state))
    if (keep || this.#integrity) {
      const hash = await sha256(bytes)
      this.#integrity?.check(file, index, hash, this.place(file))
      if (keep) await this.#kept!.put(file, index, bytes, hash)
    }
    taker.take(index, bytes, 'source')
  }

  #room(): Uint8Array<ArrayBuffer> {
    return this.#rooms.pop() ?? new Uint8Array(CHUNK_BYTES)
  }
}

/** Whether a state tells more than a size, so that what was kept in it can be compared later. */
const isTold = ({ etag, lastModified }: FileState): boolean => etag !== null || lastModified !== null

/** Whether two states are proven to be of the same bytes. */
function isSame(before: FileState, now: FileState): boolean {
  const compared = (before.etag !== null && now.etag !== null) || (before.lastModified !== null && now.lastModified !== null)
  return compared && difference(before, now) === undefined
}

export const keyOf = (file: string, index: number): string => `${file}\n${index}`

/** What a range takes of each chunk. */
export function pieces({ file, offset, length }: Range): { key: string; index: number; start: number; end: number }[] {
  const found = []
  for (let index = Math.floor(offset / CHUNK_BYTES); index * CHUNK_BYTES < offset + length; index++) {
    const start = Math.max(offset - index * CHUNK_BYTES, 0)
    const end = Math.min(offset + length - index * CHUNK_BYTES, CHUNK_BYTES)
    found.push({ key: keyOf(file, index), index, start, end })
  }
  return found
}

/** Cuts bytes that come in order into chunks. */
class Cutter {
  next: number
  length = 0
  readonly #newRoom: () => Uint8Array<ArrayBuffer>
  readonly #onBytes: ChunkTaker['onBytes']
  #room: Uint8Array<ArrayBuffer> | undefined
  #filled = 0
  #complete: { index: number; bytes: Uint8Array<ArrayBuffer> }[] = []

  constructor(first: number, newRoom: () => Uint8Array<ArrayBuffer>, onBytes: ChunkTaker['onBytes']) {
    this.next = first
    this.#newRoom = newRoom
    this.#onBytes = onBytes
  }

  push(part: Uint8Array): void {
    for (let rest = part; rest.length > 0;) {
      this.#room ??= this.#newRoom()
      const taken = rest.subarray(0, CHUNK_BYTES - this.#filled)
      this.#room.set(taken, this.#filled)
      this.#filled += taken.length
      this.length += taken.length
      this.#onBytes(this.next, taken.length, 'source')
      rest = rest.subarray(taken.length)
      if (this.#filled === CHUNK_BYTES) this.end()
    }
  }

  /** What has come makes a chunk, though a short one. */
  end(): void {
    if (!this.#room) return
    this.#complete.push({ index: this.next++, bytes: this.#room.subarray(0, this.#filled) })
    this.#room = undefined
    this.#filled = 0
  }

  /** The chunks that were completed since the last call. */
  complete(): { index: number; bytes: Uint8Array<ArrayBuffer> }[] {
    return this.#complete.splice(0)
  }
}
