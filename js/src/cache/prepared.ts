// Prepared weights: the weights' memory of a loaded model, kept in a pack and brought back at the next start.
import { CHUNK_BYTES, chunkLength, chunksOf, sha256 } from '../loader/chunk.js'
import type { Pack } from './pack.js'

const FILE = 'weights'
const LANES = 4 // chunks whose SHA-256 is computed at the same time: browsers do it on other threads

/** Fills `memory` from the pack; false where something is missing or damaged. `onBytes` hears of what was read and found right. */
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
  return good
}

/** Keeps `memory` in the pack, with pauses so that the model can be used meanwhile. Where there is no room for it nothing is kept. */
export async function keepPrepared(pack: Pack, memory: () => Uint8Array, pause: () => Promise<void>): Promise<void> {
  const size = memory().length
  pack.begin(FILE, { size, etag: null, lastModified: null })
  const room = new Uint8Array(CHUNK_BYTES)
  for (let index = 0; index < chunksOf(size) && !pack.full; index++) {
    const start = index * CHUNK_BYTES
    const bytes = room.subarray(0, chunkLength(size, index)) // memory that threads share cannot be hashed
    bytes.set(memory().subarray(start, start + bytes.length))
    await pack.put(FILE, index, bytes, await sha256(bytes))
    await pause()
  }
  if (pack.full) pack.clear()
  else pack.commit()
}
