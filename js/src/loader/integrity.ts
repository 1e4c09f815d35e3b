// A manifest: size and SHA-256 of every chunk of a model's files. Who pins it gets these bytes or an error.
import { QwasmError } from '../errors.js'
import { CHUNK_BYTES, chunksOf } from './chunk.js'

export const MANIFEST_FILE = 'qwasm-manifest.json'

export interface Manifest {
  version: 1
  chunkBytes: number
  /** By name: bytes, and SHA-256 (hexadecimal) of each chunk. */
  files: Record<string, { size: number; sha256: string[] }>
}

export class Integrity {
  readonly #files: Manifest['files']

  /** `place` names the manifest in errors. */
  constructor(manifest: unknown, place: string) {
    const problem = manifestProblem(manifest)
    if (problem) throw new QwasmError('integrity', `${place} is no manifest of qwasm: ${problem}.`)
    this.#files = (manifest as Manifest).files
  }

  /** Bytes of a file; undefined where the manifest does not have it, and so it must not be used. */
  size(file: string): number | undefined {
    return Object.hasOwn(this.#files, file) ? this.#files[file]!.size : undefined
  }

  hash(file: string, chunk: number): string | undefined {
    return this.size(file) === undefined ? undefined : this.#files[file]!.sha256[chunk]
  }

  /** Throws where a chunk is not the one of the manifest. */
  check(file: string, chunk: number, hash: string, place: string): void {
    const expected = this.hash(file, chunk)
    if (hash === expected) return
    const start = chunk * CHUNK_BYTES
    const what = expected ? `expected SHA-256 ${expected}, found ${hash}` : `the manifest ends at byte ${this.size(file)}`
    throw new QwasmError('integrity', `${place}: the bytes from ${start} on are not those of the manifest: ${what}.`)
  }
}

function manifestProblem(manifest: unknown): string | undefined {
  if (typeof manifest !== 'object' || manifest === null) return 'expected an object'
  const { version, chunkBytes, files } = manifest as Partial<Manifest>
  if (version !== 1) return `expected version 1, found ${String(version)}`
  if (chunkBytes !== CHUNK_BYTES) return `expected chunkBytes ${CHUNK_BYTES}, found ${String(chunkBytes)}`
  if (typeof files !== 'object' || files === null) return 'expected files, an object'
  for (const [name, entry] of Object.entries(files)) {
    const { size, sha256 } = (entry ?? {}) as Partial<Manifest['files'][string]>
    if (!Number.isSafeInteger(size) || size! < 0) return `${name}: expected size, a whole number of bytes`
    if (!Array.isArray(sha256) || !sha256.every((hash) => typeof hash === 'string' && /^[0-9a-f]{64}$/.test(hash))) {
      return `${name}: expected sha256, an array of hashes in hexadecimal`
    }
    if (sha256.length !== chunksOf(size!)) return `${name}: expected ${chunksOf(size!)} hashes, found ${sha256.length}`
  }
  return undefined
}
