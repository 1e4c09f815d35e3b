// A model in a local folder, under Node.js.
import { open, stat, type FileHandle } from 'node:fs/promises'
import { join } from 'node:path'
import { QwasmError } from '../errors.js'
import { difference, SourceChanged, type FileState, type Source } from './source.js'

const PART_BYTES = 1 << 20

export async function openFolder(path: string): Promise<Source> {
  const found = await stat(path).catch(() => undefined)
  if (!found) throw new QwasmError('missing', `There is no folder ${path}.`)
  if (found.isDirectory()) return new FolderSource(path)
  throw new QwasmError('invalid_argument', `${path} is a file; give the folder that holds it.`)
}

interface OpenFile {
  handle: FileHandle
  /** As it was when the file was opened. */
  state: FileState
}

class FolderSource implements Source {
  readonly #path: string
  readonly #open = new Map<string, Promise<OpenFile | 'missing'>>()
  readonly #handles: FileHandle[] = []
  /** Buffers that were read into, to be used again. */
  readonly #rooms: Uint8Array[] = []

  constructor(path: string) {
    this.#path = path
  }

  place(file: string): string {
    return join(this.#path, file)
  }

  async stat(file: string): Promise<FileState | 'missing'> {
    const opened = await this.#opened(file)
    if (opened !== 'missing') await this.#checkUnchanged(file, opened)
    return opened === 'missing' ? 'missing' : opened.state
  }

  async read(file: string, offset: number, length: number, write: (part: Uint8Array) => void): Promise<FileState | 'missing'> {
    const opened = await this.#opened(file)
    if (opened === 'missing') return 'missing'
    const { handle, state } = opened
    const end = length === 0 ? state.size : Math.min(offset + length, state.size)
    const room = this.#rooms.pop() ?? new Uint8Array(PART_BYTES)
    for (let position = offset; position < end;) {
      const bytesRead = await this.#readPart(file, handle, room.subarray(0, end - position), position)
      if (bytesRead === 0) break // the file was cut, which the check below tells
      write(room.subarray(0, bytesRead))
      position += bytesRead
    }
    this.#rooms.push(room)
    await this.#checkUnchanged(file, opened)
    return state
  }

  async close(): Promise<void> {
    for (const handle of this.#handles) await handle.close()
  }

  async #readPart(file: string, handle: FileHandle, room: Uint8Array, position: number): Promise<number> {
    try {
      return (await handle.read(room, 0, room.length, position)).bytesRead
    } catch (cause) {
      throw new QwasmError('io', `${this.place(file)} cannot be read: ${(cause as Error).message}`, { cause })
    }
  }

  #opened(file: string): Promise<OpenFile | 'missing'> {
    let opened = this.#open.get(file)
    if (!opened) this.#open.set(file, (opened = this.#openFile(file)))
    return opened
  }

  async #openFile(file: string): Promise<OpenFile | 'missing'> {
    try {
      const handle = await open(this.place(file), 'r')
      this.#handles.push(handle)
      return { handle, state: await stateOf(handle) }
    } catch (cause) {
      if ((cause as NodeJS.ErrnoException).code === 'ENOENT') return 'missing'
      throw new QwasmError('io', `${this.place(file)} cannot be opened: ${(cause as Error).message}`, { cause })
    }
  }

  /** A file that is written while it is read is read anew; one that is replaced stays what it was while it is open. */
  async #checkUnchanged(file: string, opened: OpenFile): Promise<void> {
    const changed = difference(opened.state, await stateOf(opened.handle))
    if (!changed) return
    if ((await this.#open.get(file)) === opened) this.#open.delete(file)
    throw new SourceChanged(file, `${this.place(file)} changed while it was loaded: ${changed}.`, 'io')
  }
}

async function stateOf(handle: FileHandle): Promise<FileState> {
  const { size, mtimeMs } = await handle.stat()
  return { size, etag: null, lastModified: String(mtimeMs) }
}
