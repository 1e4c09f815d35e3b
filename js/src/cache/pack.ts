// A pack: chunks of files in one large file, and a journal that says which they are. A chunk counts once its line is in the journal,
// and only while its bytes have the SHA-256 that stands there; so whatever happens to the files, no wrong byte comes out.
import { CHUNK_BYTES, sha256 } from '../loader/chunk.js'
import type { FileState } from '../loader/source.js'
import { Journal, readJournal } from './journal.js'
import type { StoredFile, StoreFolder } from './store.js'

const VERSION = 1

/** The journal's lines. The first is `pack`; a later line about the same thing counts. */
type Entry =
  | { pack: number; about: About }
  | { file: string; state: FileState | null } // begins a file anew; null: it is missing at its source
  | { file: string; chunk: number; slot: number; bytes: number; sha256: string }
  | { file: string; lost: number } // this chunk was found damaged
  | { file: string; dropped: true }
  | { committed: true }
  | { used: number } // milliseconds since 1970

/** What a pack is of, for people. */
export type About = Record<string, string>

interface Slot {
  slot: number
  bytes: number
  sha256: string
}

interface PackedFile {
  state: FileState | null
  chunks: Map<number, Slot>
}

/** A journal's contents. */
export interface Contents {
  about: About | undefined
  files: Map<string, PackedFile>
  committed: boolean
  used: number
}

/** What the text of a journal says. */
export const readContents = (text: string): Contents => contentsOf(readJournal(text))

function contentsOf(entries: readonly unknown[]): Contents {
  const contents: Contents = { about: undefined, files: new Map(), committed: false, used: 0 }
  for (const entry of entries as Entry[]) apply(contents, entry)
  return contents
}

function apply(contents: Contents, entry: Entry): void {
  const { files } = contents
  if ('pack' in entry) {
    if (entry.pack === VERSION) contents.about = entry.about
  } else if ('state' in entry) {
    files.set(entry.file, { state: entry.state, chunks: new Map() })
    contents.committed = false
  } else if ('chunk' in entry) {
    const { slot, bytes, sha256 } = entry
    files.get(entry.file)?.chunks.set(entry.chunk, { slot, bytes, sha256 })
  } else if ('lost' in entry) {
    files.get(entry.file)?.chunks.delete(entry.lost)
  } else if ('dropped' in entry) {
    files.delete(entry.file)
    contents.committed = false
  } else if ('committed' in entry) {
    contents.committed = true
  } else {
    contents.used = entry.used
  }
}

export const journalName = (pack: string): string => `${pack}.journal`
export const isJournal = (file: string): boolean => file.endsWith('.journal')
const dataName = (pack: string): string => `${pack}.data`

export class Pack {
  readonly #journal: Journal
  readonly #data: StoredFile
  #contents: Contents
  #free: number[] = []
  #slots = 0
  #makeRoom: () => Promise<boolean>
  #full = false

  private constructor(journal: Journal, data: StoredFile, makeRoom: () => Promise<boolean>) {
    this.#journal = journal
    this.#data = data
    this.#makeRoom = makeRoom
    this.#contents = contentsOf(journal.entries)
  }

  /** Opens or makes a pack. `makeRoom` is asked once when the place is full, and tells whether it made room. */
  static async open(folder: StoreFolder, name: string, about: About, makeRoom = async () => false): Promise<Pack> {
    const journal = await Journal.open(folder, journalName(name))
    let data: StoredFile
    try {
      data = await folder.open(dataName(name))
    } catch (error) {
      journal.close()
      throw error
    }
    const pack = new Pack(journal, data, makeRoom)
    pack.#countSlots()
    if (!pack.#contents.about) {
      pack.clear()
      pack.#record({ pack: VERSION, about })
    }
    return pack
  }

  static async remove(folder: StoreFolder, name: string): Promise<void> {
    await folder.remove(journalName(name)) // first: without it the data is nothing
    await folder.remove(dataName(name))
  }

  get committed(): boolean {
    return this.#contents.committed
  }

  /** Whether something could not be kept for want of room. */
  get full(): boolean {
    return this.#full
  }

  /** The state in which a file was kept; null where it was missing at its source, undefined where nothing is known. */
  state(file: string): FileState | null | undefined {
    return this.#contents.files.get(file)?.state
  }

  has(file: string, chunk: number): boolean {
    return this.#contents.files.get(file)?.chunks.has(chunk) ?? false
  }

  /** SHA-256 of a kept chunk. */
  hash(file: string, chunk: number): string | undefined {
    return this.#contents.files.get(file)?.chunks.get(chunk)?.sha256
  }

  /** Begins a file anew: chunks of it that were kept are gone. */
  begin(file: string, state: FileState | null): void {
    const known = this.#contents.files.get(file)
    if (state === null && known?.state === null) return
    this.#record({ file, state })
    if (known && known.chunks.size > 0) this.#countSlots()
  }

  drop(file: string): void {
    if (!this.#contents.files.has(file)) return
    this.#record({ file, dropped: true })
    this.#countSlots()
  }

  /** Forgets the chunks that are meant, and gives back their room behind the last one that stays; tells whether there were any. */
  loseWhere(meant: (file: string, chunk: number) => boolean): boolean {
    const lost: Entry[] = []
    for (const [file, { chunks }] of this.#contents.files) {
      for (const chunk of chunks.keys()) if (meant(file, chunk)) lost.push({ file, lost: chunk })
    }
    if (lost.length === 0) return false
    this.#record(...lost)
    this.#countSlots()
    this.#data.truncate(this.#slots * CHUNK_BYTES)
    return true
  }

  /** Forgets everything. */
  clear(): void {
    this.#journal.clear()
    this.#data.truncate(0)
    this.#contents = contentsOf([])
    this.#countSlots()
  }

  /** The bytes of a chunk, in `room`, after their SHA-256 was seen to be right; undefined where it is not there or damaged. */
  async read(file: string, chunk: number, room: Uint8Array<ArrayBuffer>): Promise<Uint8Array<ArrayBuffer> | undefined> {
    const slot = this.#contents.files.get(file)?.chunks.get(chunk)
    if (!slot) return undefined
    const bytes = room.subarray(0, slot.bytes)
    const read = this.#data.read(bytes, slot.slot * CHUNK_BYTES)
    if (read === slot.bytes && (await sha256(bytes)) === slot.sha256) return bytes
    this.#record({ file, lost: chunk })
    this.#countSlots()
    return undefined
  }

  /** Keeps a chunk of a file that was begun. Where that fails nothing is kept any more; it is not an error. */
  async put(file: string, chunk: number, bytes: Uint8Array, hash: string): Promise<void> {
    if (this.#full || !this.#contents.files.has(file)) return
    const slot = this.#free.pop() ?? this.#slots++
    if (!this.#write(slot, bytes) && !((await this.#makeRoom()) && this.#write(slot, bytes))) {
      this.#full = true
      return
    }
    this.#record({ file, chunk, slot, bytes: bytes.length, sha256: hash })
  }

  /** Says that everything that is needed is there. */
  commit(): void {
    if (!this.#full && !this.committed) this.#record({ committed: true })
  }

  use(): void {
    this.#record({ used: Date.now() })
  }

  close(): void {
    this.#journal.close()
    this.#data.close()
  }

  #record(...entries: Entry[]): void {
    for (const entry of entries) apply(this.#contents, entry)
    try {
      this.#journal.add(entries)
    } catch {
      this.#full = true
    }
  }

  #write(slot: number, bytes: Uint8Array): boolean {
    try {
      this.#data.write(bytes, slot * CHUNK_BYTES)
      return true
    } catch {
      return false
    }
  }

  #countSlots(): void {
    const taken = new Set<number>()
    for (const { chunks } of this.#contents.files.values()) for (const { slot } of chunks.values()) taken.add(slot)
    this.#slots = Math.max(-1, ...taken) + 1
    this.#free = []
    for (let slot = 0; slot < this.#slots; slot++) if (!taken.has(slot)) this.#free.push(slot)
  }
}
