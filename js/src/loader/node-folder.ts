// A model in a local folder, under Node.js.
import { open, stat, type FileHandle } from 'node:fs/promises'
import { join } from 'node:path'
import { QwasmError } from '../errors.js'
import type { Arrived, Receiver, Source } from './source.js'

export async function openFolder(path: string): Promise<Source> {
  const found = await stat(path).catch(() => undefined)
  if (!found) throw new QwasmError('missing', `There is no folder ${path}.`)
  if (found.isDirectory()) return new FolderSource(path)
  if (path.endsWith('.gguf')) {
    throw new QwasmError('unsupported', `${path}: GGUF files are not supported; give the folder of a Hugging Face model.`)
  }
  throw new QwasmError('invalid_argument', `${path} is a file; give the folder that holds it.`)
}

class FolderSource implements Source {
  readonly #path: string
  readonly #open = new Map<string, Promise<{ handle: FileHandle; size: number } | 'missing'>>()

  constructor(path: string) {
    this.#path = path
  }

  place(file: string): string {
    return join(this.#path, file)
  }

  async read(file: string, offset: number, length: number, receiver: Receiver): Promise<Arrived | 'missing'> {
    let opened = this.#open.get(file)
    if (!opened) this.#open.set(file, (opened = this.#openFile(file)))
    const found = await opened
    if (found === 'missing') return 'missing'
    const { handle, size } = found
    const there = Math.max(0, Math.min(length === 0 ? size : length, size - offset))
    const bytes = length === 0 ? new Uint8Array(there) : receiver.room(there)
    let filled = 0
    try {
      while (filled < bytes.length) {
        const { bytesRead } = await handle.read(bytes, filled, bytes.length - filled, offset + filled)
        if (bytesRead === 0) break
        filled += bytesRead
        receiver.onBytes(bytesRead)
      }
    } catch (cause) {
      throw new QwasmError('io', `${this.place(file)} cannot be read: ${(cause as Error).message}`, { cause })
    }
    return { bytes: bytes.subarray(0, filled), fileSize: size }
  }

  async close(): Promise<void> {
    for (const opened of this.#open.values()) {
      const found = await opened.catch(() => 'missing' as const)
      if (found !== 'missing') await found.handle.close()
    }
  }

  async #openFile(file: string): Promise<{ handle: FileHandle; size: number } | 'missing'> {
    try {
      const handle = await open(this.place(file), 'r')
      return { handle, size: (await handle.stat()).size }
    } catch (cause) {
      if ((cause as NodeJS.ErrnoException).code === 'ENOENT') return 'missing'
      throw new QwasmError('io', `${this.place(file)} cannot be opened: ${(cause as Error).message}`, { cause })
    }
  }
}
