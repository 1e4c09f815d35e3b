// A journal: lines of JSON, each with a checksum, that are only ever added. Whatever ends a write half-way, the lines before it count.
import type { StoredFile, StoreFolder } from './store.js'

/** The entries of a journal's text; a line that is damaged or was cut off is left out. */
export function readJournal(text: string): unknown[] {
  const whole = text.split('\n').filter((line) => line.slice(0, 9) === `${checksum(line.slice(9))} `)
  return whole.map((line) => JSON.parse(line.slice(9)) as unknown)
}

/** FNV-1a, which every change of one character changes. */
function checksum(text: string): string {
  let hash = 0x811c9dc5
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193)
  return (hash >>> 0).toString(16).padStart(8, '0')
}

export class Journal {
  /** What stood there when it was opened. */
  readonly entries: unknown[]
  readonly #file: StoredFile
  #end: number

  private constructor(file: StoredFile, entries: unknown[]) {
    this.#file = file
    this.entries = entries
    this.#end = file.size()
  }

  static async open(folder: StoreFolder, name: string): Promise<Journal> {
    const file = await folder.open(name)
    const bytes = new Uint8Array(file.size())
    file.read(bytes, 0)
    const journal = new Journal(file, readJournal(new TextDecoder().decode(bytes)))
    if (bytes.length > 0 && bytes[bytes.length - 1] !== 10) journal.#write('\n') // ends a line that was cut off
    return journal
  }

  /** Adds entries in one write: each costs a browser about a millisecond. */
  add(entries: readonly unknown[]): void {
    const lines = entries.map((entry) => JSON.stringify(entry))
    this.#write(lines.map((json) => `${checksum(json)} ${json}\n`).join(''))
  }

  clear(): void {
    this.entries.length = 0
    this.#file.truncate(0)
    this.#end = 0
  }

  close(): void {
    this.#file.close()
  }

  #write(text: string): void {
    const bytes = new TextEncoder().encode(text)
    this.#file.write(bytes, this.#end)
    this.#end += bytes.length
  }
}
