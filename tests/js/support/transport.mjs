// What tests of the transport share: files whose bytes are known, a clock that costs no time, and a reader that checks.
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after } from 'node:test'
import { startHostileServer } from '../../support/hostile-server.mjs'
import { quickly as withoutWaiting } from '../../support/right-loader.mjs'
import { temporaryFolder } from './models.mjs'
import { importSource } from './source.mjs'

export const transport = await importSource(
  'loader/url.ts',
  'loader/gate.ts',
  'loader/retry.ts',
  'loader/source.ts',
  'loader/files.ts',
  'loader/node-folder.ts'
)

export const SIZE = 300_000
const weights = Uint8Array.from({ length: SIZE }, (_, i) => (i * 2654435761) >>> 24)
weights.set([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0x7b]) // a header length that looks like gzip data, and a brace

/** The files' bytes by their names. */
export const truth = {
  'model.safetensors': weights,
  'config.json': new TextEncoder().encode('{"architectures": ["Qwen3ForCausalLM"]}'),
  'empty.txt': new Uint8Array(0),
}

/** A folder that holds them, for this test file alone. */
export const folder = temporaryFolder()
for (const [name, bytes] of Object.entries(truth)) writeFileSync(join(folder, name), bytes)

const servers = []
after(() => Promise.all(servers.map((server) => server.close())))

/** A hostile server of those files, which ends with the test file. */
export async function serve(behave, options) {
  const server = await startHostileServer(folder, behave, options)
  servers.push(server)
  return server
}

export const quickly = (more) => withoutWaiting(transport.PATIENCE, more)

/** Checks that bytes that were handed over are those of the file. None may be wrong, even if an error follows. */
export function check(file, part, position) {
  const right = truth[file].subarray(position, position + part.length)
  assert.ok(Buffer.from(right).equals(part), `${file}: ${part.length} bytes at ${position} are not those of the file`)
}

/** Reads a part of a file: its bytes, checked, and its state. */
export async function read(source, file, offset = 0, length = 0) {
  let position = offset
  const state = await source.read(file, offset, length, (part) => {
    check(file, part, position)
    position += part.length
  })
  return { bytes: truth[file].subarray(offset, position), state }
}

/** Reads a file and checks that it is whole. */
export async function readWhole(source, file = 'model.safetensors') {
  const { bytes, state } = await read(source, file)
  assert.equal(bytes.length, truth[file].length)
  return state
}
