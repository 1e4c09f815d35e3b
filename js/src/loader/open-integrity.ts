// Finds the manifest that a caller pinned: given as it is, or lying beside the model's files with a known hash.
import type { Pack } from '../cache/pack.js'
import { QwasmError } from '../errors.js'
import { canHash } from './chunk.js'
import { ModelFiles, type CacheMode } from './chunks.js'
import { Integrity, MANIFEST_FILE } from './integrity.js'
import type { Source } from './source.js'

export async function openIntegrity(
  asked: Record<string, unknown> | string | undefined,
  source: Source,
  kept: Pack | undefined,
  mode: CacheMode
): Promise<Integrity | undefined> {
  if (asked === undefined) return undefined
  if (!canHash()) {
    throw new QwasmError('environment', 'The files cannot be checked here: browsers have SHA-256 in secure contexts only (https, or localhost).')
  }
  if (typeof asked === 'object') return new Integrity(asked, 'The option integrity')
  // The hash says whether the manifest is right, so one that was kept needs no asking.
  const modes: CacheMode[] = mode === 'only-if-cached' ? [mode] : ['force-cache', 'reload']
  let found = ''
  for (const mode of modes) {
    const parts = await new ModelFiles({ source, kept, mode }).whole(MANIFEST_FILE)
    if (parts === 'missing') throw new QwasmError('missing', `${source.place(MANIFEST_FILE)}, the manifest that integrity pins, is missing.`)
    const bytes = new Uint8Array(await new Blob(parts as BlobPart[]).arrayBuffer())
    found = await subresourceHash(bytes)
    if (found === asked) return new Integrity(JSON.parse(new TextDecoder().decode(bytes)), source.place(MANIFEST_FILE))
  }
  throw new QwasmError('integrity', `${source.place(MANIFEST_FILE)} is not the manifest that integrity pins: expected ${asked}, found ${found}.`)
}

/** 'sha256-' and the hash in base64, as HTML's integrity attribute has it. */
export async function subresourceHash(bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', bytes))
  return `sha256-${btoa(String.fromCharCode(...digest))}`
}
