// The browser's private file system as a store. Files open in workers only; listing and removing work everywhere.
import type { Store, StoredFile, StoreFolder } from './store.js'

const ROOT = 'qwasm'
const READ_ATTEMPTS = 50
const OPEN_MS = [50, 200, 500] // a worker that was ended a moment ago may still have its files open

// TypeScript's library of the window lacks what only workers have.
interface SyncAccessHandle {
  getSize(): number
  read(bytes: Uint8Array, options: { at: number }): number
  write(bytes: Uint8Array, options: { at: number }): number
  truncate(size: number): void
  close(): void
}
type WorkerFileHandle = FileSystemFileHandle & { createSyncAccessHandle(): Promise<SyncAccessHandle> }
type IterableDirectory = FileSystemDirectoryHandle & { entries(): AsyncIterable<[string, FileSystemHandle]> }

/** The store, or undefined where this browser has none or refuses it (private windows). */
export async function openOpfs(): Promise<Store | undefined> {
  try {
    const origin = await navigator.storage.getDirectory()
    return new OpfsStore((await origin.getDirectoryHandle(ROOT, { create: true })) as IterableDirectory)
  } catch {
    return undefined
  }
}

class OpfsStore implements Store {
  readonly #root: IterableDirectory

  constructor(root: IterableDirectory) {
    this.#root = root
  }

  async folder(name: string): Promise<StoreFolder> {
    return new OpfsFolder((await this.#root.getDirectoryHandle(name, { create: true })) as IterableDirectory)
  }

  async folders(): Promise<string[]> {
    const names: string[] = []
    for await (const [name, handle] of this.#root.entries()) if (handle.kind === 'directory') names.push(name)
    return names.sort()
  }

  async remove(folder: string): Promise<void> {
    await ignoreMissing(this.#root.removeEntry(folder, { recursive: true }))
  }

  async quota(): Promise<{ usage: number; quota: number } | undefined> {
    const { usage, quota } = await navigator.storage.estimate()
    return usage === undefined || quota === undefined ? undefined : { usage, quota }
  }

  lock(folder: string, waiting?: () => void): Promise<(() => void) | undefined> {
    const name = `${ROOT}/${folder}`
    const ask = (ifAvailable: boolean): Promise<(() => void) | undefined> =>
      new Promise((resolve, reject) => {
        const held = navigator.locks.request(name, { ifAvailable }, (lock) => {
          if (!lock) return resolve(undefined)
          return new Promise<void>((release) => resolve(release))
        })
        held.catch(reject)
      })
    return ask(true).then((release) => {
      if (release || !waiting) return release
      waiting()
      return ask(false)
    })
  }
}

class OpfsFolder implements StoreFolder {
  readonly #handle: IterableDirectory

  constructor(handle: IterableDirectory) {
    this.#handle = handle
  }

  async open(name: string): Promise<StoredFile> {
    const handle = (await this.#handle.getFileHandle(name, { create: true })) as WorkerFileHandle
    for (const pause of OPEN_MS) {
      try {
        return new OpfsFile(await handle.createSyncAccessHandle())
      } catch (error) {
        if ((error as Error).name !== 'NoModificationAllowedError') throw error
        await new Promise((resolve) => setTimeout(resolve, pause))
      }
    }
    return new OpfsFile(await handle.createSyncAccessHandle())
  }

  async readText(name: string): Promise<string> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await (await (await this.#handle.getFileHandle(name)).getFile()).text()
      } catch (error) {
        const { name: kind } = error as Error
        if (kind === 'NotFoundError') return ''
        if (kind !== 'NotReadableError' || attempt === READ_ATTEMPTS) throw error
        await new Promise((resolve) => setTimeout(resolve, 10)) // it was written to between the two steps of reading
      }
    }
  }

  async remove(name: string): Promise<void> {
    await ignoreMissing(this.#handle.removeEntry(name))
  }

  async list(): Promise<{ name: string; bytes: number; changed: number }[]> {
    const files = []
    for await (const [name, handle] of this.#handle.entries()) {
      if (handle.kind !== 'file') continue
      const file = await ignoreMissing((handle as FileSystemFileHandle).getFile()) // others may remove files at any time
      if (file) files.push({ name, bytes: file.size, changed: file.lastModified })
    }
    return files
  }
}

class OpfsFile implements StoredFile {
  readonly #handle: SyncAccessHandle

  constructor(handle: SyncAccessHandle) {
    this.#handle = handle
  }

  size(): number {
    return this.#handle.getSize()
  }

  read(bytes: Uint8Array, at: number): number {
    return this.#handle.read(bytes, { at })
  }

  write(bytes: Uint8Array, at: number): void {
    const written = this.#handle.write(bytes, { at })
    if (written !== bytes.length) throw new DOMException('The storage is full.', 'QuotaExceededError')
  }

  truncate(size: number): void {
    this.#handle.truncate(size)
  }

  close(): void {
    this.#handle.close()
  }
}

async function ignoreMissing<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    return await work
  } catch (error) {
    if ((error as Error).name !== 'NotFoundError') throw error
    return undefined
  }
}
