// Pinned manifests: `qwasm manifest` writes them, and what differs from them by a byte is refused before it is used.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { appendFileSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, beforeEach, describe, it } from 'node:test'
import { loadModel } from '../../dist/node.js'
import { expectedBits, goldenCases, root, wordHash } from '../support/golden.mjs'
import { startHostileServer } from '../support/hostile-server.mjs'
import { demo, temporaryFolder } from './support/models.mjs'

const [golden] = goldenCases('tests/golden/demo')
const home = temporaryFolder()
const folder = temporaryFolder(demo)
const weights = join(folder, 'model.safetensors')
const manifestOf = (place) => execFileSync(process.execPath, [join(root, 'dist/cli.js'), 'manifest', place], { stdio: ['ignore', 'pipe', 'ignore'] }).toString().trim()

let server, integrity, manifest
before(async () => {
  process.env.XDG_CACHE_HOME = home
  integrity = manifestOf(folder)
  manifest = JSON.parse(readFileSync(join(folder, 'qwasm-manifest.json'), 'utf8'))
  server = await startHostileServer(folder)
})
after(() => server.close())
beforeEach(() => {
  server.behave = () => undefined
  rmSync(join(home, 'qwasm'), { recursive: true, force: true })
})

async function load(options, source = server.url) {
  const model = await loadModel(source, { dtype: 'q4', ...options })
  try {
    assert.equal(wordHash(await model.logits(golden.ids, { positions: golden.positions })), expectedBits('demo q4', golden.name))
  } finally {
    await model.dispose()
  }
}

describe('a manifest', () => {
  it('names size and chunk hashes of every file, and its hash pins it', async () => {
    assert.match(integrity, /^sha256-[A-Za-z0-9+/]{43}=$/)
    assert.equal(manifest.files['model.safetensors'].size, readFileSync(weights).length)
    assert.ok(Object.keys(manifest.files).includes('config.json'))
    assert.equal(manifestOf(folder), integrity, 'it does not depend on itself')
  })

  it('given as it is, or by its hash, lets the right files through', async () => {
    await load({ integrity: manifest })
    await load({ integrity })
    await load({ integrity }, folder)
  })

  it('needs no asking for states: the hashes prove what is kept', async () => {
    await load({ integrity })
    const asked = server.requests.length
    await load({ integrity })
    await load({ integrity, cache: 'only-if-cached' })
    assert.equal(server.requests.length, asked)
  })

  it('with another hash is refused, whoever changed it', async () => {
    const wrong = integrity.replace(/-./, '-' + (integrity[7] === 'A' ? 'B' : 'A'))
    await assert.rejects(load({ integrity: wrong }), { code: 'integrity', message: /qwasm-manifest\.json is not the manifest.*expected sha256-/ })
  })

  it('that is missing or none is refused', async () => {
    await assert.rejects(load({ integrity }, demo), { code: 'missing', message: /qwasm-manifest\.json/ })
    for (const [wrong, named] of [
      [{}, /version/],
      [{ ...manifest, version: 2 }, /version 1/],
      [{ ...manifest, chunkBytes: 5 }, /chunkBytes/],
      [{ ...manifest, files: 1 }, /files/],
      [{ ...manifest, files: { a: null } }, /a: expected size/],
      [{ ...manifest, files: { a: { size: 1, sha256: ['x'] } } }, /a: expected sha256/],
      [{ ...manifest, files: { a: { size: 1, sha256: [] } } }, /a: expected 1 hashes/],
    ]) {
      await assert.rejects(load({ integrity: wrong }), { code: 'integrity', message: named })
    }
    for (const wrong of ['sha256-x', 'md5-1', 7, []]) await assert.rejects(load({ integrity: wrong }), { code: 'invalid_argument', message: /integrity/ })
  })

  it('makes a file that it does not name missing', async () => {
    const { 'config.json': _, ...files } = manifest.files
    await assert.rejects(load({ integrity: { ...manifest, files } }), { code: 'missing', message: /config\.json.*the pinned manifest does not name/ })
  })
})

describe('a byte that is not the manifest’s', () => {
  const refused = (change) => async () => {
    const good = readFileSync(weights)
    try {
      change(good)
      for (const source of [server.url, folder]) await assert.rejects(load({ integrity }, source), { code: /integrity|invalid_file/, message: /model\.safetensors/ })
    } finally {
      writeFileSync(weights, good)
    }
    await load({ integrity })
  }
  const flipped = (at) => (good) => {
    const bytes = Buffer.from(good)
    bytes[at < 0 ? bytes.length + at : at] ^= 1
    writeFileSync(weights, bytes)
  }
  it('at the beginning is refused', refused(flipped(0)))
  it('in the middle is refused', refused(flipped(3_000_000)))
  it('at the end is refused', refused(flipped(-1)))
  it('that is lacking is refused', refused((good) => truncateSync(weights, good.length - 1)))

  it('in a small file is refused too, more and fewer bytes as well', async () => {
    const path = join(folder, 'tokenizer.json')
    const good = readFileSync(path)
    for (const change of [() => appendFileSync(path, ' '), () => truncateSync(path, good.length - 1), () => writeFileSync(path, '')]) {
      change()
      for (const source of [server.url, folder]) await assert.rejects(load({ integrity }, source), { code: 'integrity', message: /tokenizer\.json/ })
      writeFileSync(path, good)
    }
    await load({ integrity })
  })

  it('in the cache is fetched again', async () => {
    await load({ integrity })
    const [name] = execFileSync('ls', [join(home, 'qwasm')]).toString().trim().split('\n')
    const path = join(home, 'qwasm', name, 'downloads.data')
    const bytes = readFileSync(path)
    bytes.fill(0)
    writeFileSync(path, bytes)
    await load({ integrity })
  })
})
