// A folder of the user's cache as a store, under Node.js.
import { createHash } from 'node:crypto'
import { closeSync, fstatSync, ftruncateSync, openSync, readSync, writeSync } from 'node:fs'
import { mkdir, readdir, readFile, rm, stat, statfs, unlink } from 'node:fs/promises'
import { connect, createServer, type Socket } from 'node:net'
import { homedir, platform, tmpdir } from 'node:os'
import { isAbsolute, join } from 'node:path'
import type { Store, StoredFile, StoreFolder } from './store.js'

/** Where this system keeps what can be fetched again, as XDG says; relative paths there are to be ignored. */
export function cacheFolder(): string {
  const { XDG_CACHE_HOME: xdg, LOCALAPPDATA: local } = process.env
  if (xdg && isAbsolute(xdg)) return join(xdg, 'qwasm')
  if (platform() === 'win32') return join(local ?? join(homedir(), 'AppData', 'Local'), 'qwasm', 'Cache')
  return join(homedir(), platform() === 'darwin' ? 'Library/Caches' : '.cache', 'qwasm')
}

/** The store, or undefined where no folder can be made. */
export async function openNodeStore(root = cacheFolder()): Promise<Store | undefined> {
  try {
    await mkdir(root, { recursive: true })
    return new NodeStore(root)
  } catch {
    return undefined
  }
}

class NodeStore implements Store {
  readonly #root: string

  constructor(root: string) {
    this.#root = root
  }

  async folder(name: string): Promise<StoreFolder> {
    const path = join(this.#root, name)
    await mkdir(path, { recursive: true })
    return new NodeFolder(path)
  }

  async folders(): Promise<string[]> {
    const entries = await readdir(this.#root, { withFileTypes: true })
    return entries.filter((entry) => entry.isDirectory()).map(({ name }) => name).sort()
  }

  async remove(folder: string): Promise<void> {
    await rm(join(this.#root, folder), { recursive: true, force: true })
  }

  async quota(): Promise<{ usage: number; quota: number } | undefined> {
    const { bsize, blocks, bavail } = await statfs(this.#root)
    return { usage: bsize * (blocks - bavail), quota: bsize * blocks }
  }

  async lock(folder: string, waiting?: () => void): Promise<(() => void) | undefined> {
    const address = socketAddress(join(this.#root, folder))
    for (let told = false; ; told = true) {
      const release = await listen(address)
      if (release) return release
      if (!waiting) return undefined
      if (!told) waiting()
      await untilFree(address)
    }
  }
}

/** A lock is a socket that listens: it ends with its worker or process, however that ends, and others can wait for it to close. */
function socketAddress(path: string): string {
  const name = `qwasm-${createHash('sha256').update(path).digest('hex').slice(0, 24)}`
  if (platform() === 'win32') return `\\\\.\\pipe\\${name}`
  return platform() === 'linux' ? `\0${name}` : join(tmpdir(), `${name}.sock`)
}

/** Listens, and returns how to end that; undefined where another does. */
function listen(address: string): Promise<(() => void) | undefined> {
  return new Promise((resolve, reject) => {
    const waiting = new Set<Socket>()
    const server = createServer((client) => void waiting.add(client.on('error', () => {}).unref())).unref()
    const release = () => {
      server.close()
      for (const client of waiting) client.destroy()
    }
    server.once('error', (error: NodeJS.ErrnoException) => (error.code === 'EADDRINUSE' ? resolve(undefined) : reject(error)))
    server.listen(address, () => resolve(release))
  })
}

/** Resolves when nobody listens any more. The file of a socket whose process was killed stays behind and is removed. */
function untilFree(address: string): Promise<void> {
  return new Promise((resolve) => {
    const client = connect(address)
    client.once('error', (error: NodeJS.ErrnoException) => {
      const stale = error.code === 'ECONNREFUSED' && address.endsWith('.sock')
      if (stale) void unlink(address).catch(() => {})
    })
    client.once('close', () => setTimeout(resolve, 20))
    client.resume()
  })
}

class NodeFolder implements StoreFolder {
  readonly #path: string

  constructor(path: string) {
    this.#path = path
  }

  async open(name: string): Promise<StoredFile> {
    return new NodeFile(openSync(join(this.#path, name), 'a+'), join(this.#path, name))
  }

  async readText(name: string): Promise<string> {
    return (await readFile(join(this.#path, name), 'utf8').catch(undefinedWhereMissing)) ?? ''
  }

  async remove(name: string): Promise<void> {
    await rm(join(this.#path, name), { force: true })
  }

  async list(): Promise<{ name: string; bytes: number; changed: number }[]> {
    const names = await readdir(this.#path)
    const files = names.map(async (name) => {
      const { size, mtimeMs } = await stat(join(this.#path, name))
      return { name, bytes: size, changed: mtimeMs }
    })
    return (await Promise.all(files.map((file) => file.catch(undefinedWhereMissing)))).filter((file) => file !== undefined)
  }
}

class NodeFile implements StoredFile {
  readonly #file: number

  constructor(made: number, path: string) {
    closeSync(made) // it exists now; a file opened for appending could not be written in its middle
    this.#file = openSync(path, 'r+')
  }

  size(): number {
    return fstatSync(this.#file).size
  }

  read(bytes: Uint8Array, at: number): number {
    let done = 0
    for (let count; done < bytes.length && (count = readSync(this.#file, bytes, done, bytes.length - done, at + done)) > 0; done += count);
    return done
  }

  write(bytes: Uint8Array, at: number): void {
    for (let done = 0; done < bytes.length;) done += writeSync(this.#file, bytes, done, bytes.length - done, at + done)
  }

  truncate(size: number): void {
    ftruncateSync(this.#file, size)
  }

  close(): void {
    closeSync(this.#file)
  }
}

/** Others may remove files at any time. */
function undefinedWhereMissing(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT') throw error
}
