// qwasm manifest: writes down sizes and chunk hashes of a model's files, so that a site can pin them.
import { open, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { QwasmError } from '../errors.js'
import { CHUNK_BYTES, sha256 } from '../loader/chunk.js'
import { MANIFEST_FILE, type Manifest } from '../loader/integrity.js'
import { subresourceHash } from '../loader/open-integrity.js'

const OF_A_MODEL = /\.(json|jinja|txt|safetensors)$/

/** Writes DIR/qwasm-manifest.json; returns its hash, as the option `integrity` takes it, and the files that it names. */
export async function writeManifest(folder: string): Promise<{ path: string; integrity: string; files: string[] }> {
  const names = await readdir(folder).catch((cause: Error) => {
    throw new QwasmError('io', `${folder} cannot be read: ${cause.message}`, { cause })
  })
  const files = names.filter((name) => OF_A_MODEL.test(name) && !name.startsWith('.') && name !== MANIFEST_FILE).sort()
  if (files.length === 0) throw new QwasmError('missing', `${folder} holds no file of a model (.json, .jinja, .txt, .safetensors).`)
  const manifest: Manifest = { version: 1, chunkBytes: CHUNK_BYTES, files: {} }
  for (const name of files) manifest.files[name] = await hashes(join(folder, name))
  const bytes = new TextEncoder().encode(`${JSON.stringify(manifest)}\n`)
  const path = join(folder, MANIFEST_FILE)
  await writeFile(path, bytes)
  return { path, integrity: await subresourceHash(bytes), files }
}

async function hashes(path: string): Promise<Manifest['files'][string]> {
  const file = await open(path)
  try {
    const sha: string[] = []
    const room = new Uint8Array(CHUNK_BYTES)
    for (let size = 0; ;) {
      let filled = 0
      for (let read = 1; filled < CHUNK_BYTES && read > 0; filled += read) {
        read = (await file.read(room, filled, CHUNK_BYTES - filled, size + filled)).bytesRead
      }
      if (filled > 0) sha.push(await sha256(room.subarray(0, filled)))
      size += filled
      if (filled < CHUNK_BYTES) return { size, sha256: sha }
    }
  } finally {
    await file.close()
  }
}
