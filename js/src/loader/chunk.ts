// Chunks: the pieces in which files are proven, kept and fetched.
import { QwasmError } from '../errors.js'

/**
 * Every file is cut into chunks of this size; the last one is shorter. What an interruption can cost is one of them. With 1 MiB a first load
 * in Chromium took 9.7 s instead of 8.5: hashing copies a chunk, and from 960 KiB on such a copy is fresh memory from the system each time.
 */
export const CHUNK_BYTES = 2 ** 19

export const chunksOf = (size: number): number => Math.ceil(size / CHUNK_BYTES)

/** Bytes of chunk `index` of a file of `size` bytes. */
export const chunkLength = (size: number, index: number): number => Math.min(CHUNK_BYTES, size - index * CHUNK_BYTES)

/** SHA-256 is there in secure contexts only. */
export const canHash = (): boolean => globalThis.crypto?.subtle !== undefined

/** SHA-256 in hexadecimal. The bytes must not be shared memory. */
export async function sha256(bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  if (!canHash()) throw new QwasmError('environment', 'SHA-256 is missing: browsers have it in secure contexts only (https, or localhost).')
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', bytes))
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, '0')).join('')
}
