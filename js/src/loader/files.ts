// A model in files that the browser was given.
import { QwasmError } from '../errors.js'
import type { Arrived, Receiver, Source } from './source.js'

export class FilesSource implements Source {
  readonly #files: ReadonlyMap<string, Blob>

  constructor(files: readonly { name: string; blob: Blob }[]) {
    this.#files = new Map(files.map(({ name, blob }) => [name, blob]))
  }

  place(file: string): string {
    return `${file} among the ${this.#files.size} given files`
  }

  async read(file: string, offset: number, length: number, receiver: Receiver): Promise<Arrived | 'missing'> {
    const blob = this.#files.get(file)
    if (!blob) return 'missing'
    try {
      const bytes = new Uint8Array(await blob.slice(offset, length === 0 ? blob.size : offset + length).arrayBuffer())
      receiver.onBytes(bytes.length)
      return { bytes, fileSize: blob.size }
    } catch (cause) {
      throw new QwasmError('io', `${file} cannot be read: ${(cause as Error).message}`, { cause })
    }
  }

  async close(): Promise<void> {}
}
