// Prepared weights: the weights' memory of a loaded model, kept in a pack and brought back at the next start.
import { CHUNK_BYTES, chunkLength, chunksOf, sha256 } from '../loader/chunk.js'
import type { ModelCache } from './model-cache.js'
import type { Pack } from './pack.js'

const FILE = 'weights'
const LANES = 4 // chunks whose SHA-256 is computed at the same time: browsers do it on other threads

/** Fills `memory` from the pack; false where not all is there. Damage empties the pack. `onBytes` hears of what was read and found right. */
export async function restorePrepared(pack: Pack, memory: () => Uint8Array, onBytes: (count: number) => void): Promise<boolean> {
  if (!pack.committed) return false
  const chunks = chunksOf(memory().length)
  let next = 0
  let good = true
  const lane = async (): Promise<void> => {
    const room = new Uint8Array(CHUNK_BYTES)
    while (good && next < chunks) {
      const index = next++
      const bytes = await pack.read(FILE, index, room)
      if (bytes?.length !== chunkLength(memory().length, index)) good = false
      else memory().set(bytes, index * CHUNK_BYTES)
      onBytes(bytes?.length ?? 0)
    }
  }
  await Promise.all(Array.from({ length: LANES }, lane))
  if (!good) pack.clear()
  return good
}

/** What a pack of prepared weights is of. */
export interface PreparedName {
  layout: string
  version: string
}

/** When the model is not used. Keeping beside a running call made Chromium 156 decode at 45 instead of 63 tokens/s in a private window. */
export interface Rest {
  /** Resolves once no call has run for a moment. */
  begins(): Promise<void>
  /** Lets calls begin that wait, and tells whether none did. */
  lasts(): Promise<boolean>
}

/** Rest that never ends. */
export const AT_ONCE: Rest = { begins: async () => {}, lasts: async () => true }

/**
 * Keeps `memory` while the model rests, in as many sittings as that takes. Between them the cache is free for others; a sitting that finds it
 * removed, or taken by another who loads the same, is the last. Where there is no room nothing is kept.
 */
export async function keepPrepared(
  reopen: () => Promise<ModelCache | undefined>,
  { layout, version }: PreparedName,
  memory: () => Uint8Array,
  rest: Rest
): Promise<void> {
  for (let done = false; !done;) {
    await rest.begins()
    const cache = await reopen()
    try {
      const pack = await cache?.openPrepared(layout, version)
      done = !pack || pack.committed || (await fill(pack, memory, rest))
    } finally {
      cache?.close()
    }
  }
}

/** Adds the chunks that are not there yet; false where the rest ended before. */
async function fill(pack: Pack, memory: () => Uint8Array, rest: Rest): Promise<boolean> {
  const size = memory().length
  if (pack.state(FILE) === undefined) pack.begin(FILE, { size, etag: null, lastModified: null })
  const room = new Uint8Array(CHUNK_BYTES)
  for (let index = 0; index < chunksOf(size) && !pack.full; index++) {
    if (pack.has(FILE, index)) continue
    const start = index * CHUNK_BYTES
    const bytes = room.subarray(0, chunkLength(size, index)) // memory that threads share cannot be hashed
    bytes.set(memory().subarray(start, start + bytes.length))
    const hash = await sha256(bytes)
    if (!(await rest.lasts())) return false
    await pack.put(FILE, index, bytes, hash)
  }
  if (pack.full) pack.clear()
  else pack.commit()
  return true
}
