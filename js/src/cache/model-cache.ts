// The cache of one model: its downloaded chunks in one pack, and for each dtype the prepared weights in another.
import { sha256 } from '../loader/chunk.js'
import { isJournal, journalName, Pack, readContents } from './pack.js'
import type { Store, StoreFolder } from './store.js'

export const DOWNLOADS = 'downloads'
export const PREPARED = 'prepared-' // and the name of the layout: prepared-q4-0123456789abcdef
const HEADER_CHUNKS = 4 // tensor headers, which are needed beside prepared weights, end before
const STALE_MS = 7 * 24 * 3600 * 1000 // a download that was not finished for a week will not be

declare const QWASM_BUILD: string // version and hash of the modules' sources, put in by the build

/** Where a model comes from. */
export interface ModelOrigin {
  /** Its address, which tells it from others. */
  source: string
  /** Its id on a hub. */
  hub?: string
}

/** The name of a source's folder. */
export async function folderName(source: string): Promise<string> {
  return (await sha256(new TextEncoder().encode(source))).slice(0, 32)
}

interface Place {
  store: Store
  origin: ModelOrigin
  folder: StoreFolder
  name: string
}

export class ModelCache {
  readonly downloads: Pack
  readonly #place: Place
  readonly #release: () => void
  #prepared: Pack | undefined

  private constructor(place: Place, downloads: Pack, release: () => void) {
    this.#place = place
    this.downloads = downloads
    this.#release = release
  }

  /**
   * Opens the cache of a source, alone; undefined where the store does not work. While another tab or process has it this waits, after
   * calling `waiting`, or without that does not open it.
   */
  static async open(store: Store, origin: ModelOrigin, waiting?: () => void): Promise<ModelCache | undefined> {
    let release: (() => void) | undefined
    try {
      const name = await folderName(origin.source)
      release = await store.lock(name, waiting)
      if (!release) return undefined
      const folder = await store.folder(name)
      const makeRoom = () => evict(store, (folder) => folder !== name, 0)
      const downloads = await Pack.open(folder, DOWNLOADS, { ...origin }, makeRoom)
      const cache = new ModelCache({ store, origin, folder, name }, downloads, release)
      cache.downloads.use()
      await evict(store, (folder) => folder !== name, STALE_MS)
      return cache
    } catch {
      release?.()
      return undefined
    }
  }

  /** Opens it once more; undefined where it was removed meanwhile, or another has it. */
  async reopen(): Promise<ModelCache | undefined> {
    const { store, origin, name } = this.#place
    return (await store.folders()).includes(name) ? ModelCache.open(store, origin) : undefined
  }

  /**
   * The pack of prepared weights with this layout, made of the files that `version` names by this build of qwasm. What was prepared with
   * the same dtype from other files or by another build is removed.
   */
  async openPrepared(layout: string, version: string): Promise<Pack | undefined> {
    try {
      const { folder } = this.#place
      const name = PREPARED + layout
      const dtype = name.slice(0, name.lastIndexOf('-') + 1)
      const about = { layout, version, build: QWASM_BUILD }
      for (const file of await folder.list()) {
        const pack = file.name.replace(/\.\w+$/, '')
        if (!pack.startsWith(dtype)) continue
        const known = readContents(await folder.readText(journalName(pack))).about
        if (pack !== name || known?.['version'] !== version || known['build'] !== QWASM_BUILD) await Pack.remove(folder, pack)
      }
      return (this.#prepared = await Pack.open(folder, name, about, () => this.#makeRoomForPrepared()))
    } catch {
      return undefined
    }
  }

  close(): void {
    this.downloads.close()
    this.#prepared?.close()
    this.#release()
  }

  /** Prepared weights are worth more than what they were made of. */
  async #makeRoomForPrepared(): Promise<boolean> {
    const { store, name } = this.#place
    if (await evict(store, (folder) => folder !== name, 0)) return true
    return this.downloads.loseWhere((file, chunk) => file.endsWith('.safetensors') && chunk >= HEADER_CHUNKS)
  }
}

/** Removes other models' downloads that were not finished and not touched for `ms`; tells whether there were any. */
async function evict(store: Store, mayGo: (folder: string) => boolean, ms: number): Promise<boolean> {
  let removed = false
  for (const name of await store.folders()) {
    if (!mayGo(name)) continue
    const folder = await store.folder(name)
    const files = await folder.list()
    const changed = Math.max(0, ...files.map((file) => file.changed))
    if (Date.now() - changed < ms || (await anyCommitted(folder, files))) continue
    const release = await store.lock(name)
    if (!release) continue
    await store.remove(name)
    release()
    removed = true
  }
  return removed
}

async function anyCommitted(folder: StoreFolder, files: { name: string }[]): Promise<boolean> {
  for (const { name } of files) {
    if (isJournal(name) && readContents(await folder.readText(name)).committed) return true
  }
  return false
}
