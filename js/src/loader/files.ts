// A model in files that the browser was given.
import { QwasmError } from '../errors.js'
import type { FileState, Source } from './source.js'

const PART_BYTES = 4 << 20

export interface GivenFile {
  name: string
  blob: Blob
  /** As a File tells it; a slice of one does not know it any more. */
  lastModified?: number
}

export class FilesSource implements Source {
  readonly #files: ReadonlyMap<string, GivenFile>

  constructor(files: readonly GivenFile[]) {
    this.#files = new Map(files.map((file) => [file.name, file]))
  }

  place(file: string): string {
    return `${file} among the ${this.#files.size} given files`
  }

  async stat(file: string): Promise<FileState | 'missing'> {
    const given = this.#files.get(file)
    if (!given) return 'missing'
    const { blob, lastModified } = given
    return { size: blob.size, etag: null, lastModified: lastModified === undefined ? null : String(lastModified) }
  }

  async read(file: string, offset: number, length: number, write: (part: Uint8Array) => void): Promise<FileState | 'missing'> {
    const state = await this.stat(file)
    if (state === 'missing') return 'missing'
    const { blob } = this.#files.get(file)!
    const end = length === 0 ? state.size : Math.min(offset + length, state.size)
    for (let position = offset; position < end; position += PART_BYTES) {
      const part = blob.slice(position, Math.min(position + PART_BYTES, end))
      write(new Uint8Array(await part.arrayBuffer().catch((cause) => this.#unreadable(file, cause))))
    }
    return state
  }

  async close(): Promise<void> {}

  /** Browsers refuse to read a file that has changed since it was chosen. */
  #unreadable(file: string, cause: Error): never {
    throw new QwasmError('io', `${this.place(file)} cannot be read: ${cause.message}`, { cause })
  }
}
