// The cache's packs: what was kept comes back, and whatever happens to the files, no wrong byte does.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { temporaryFolder } from './support/models.mjs'
import { importSource } from './support/source.mjs'

const { Pack, readContents } = await importSource('cache/pack.ts')
const { openNodeStore, cacheFolder } = await importSource('cache/node-store.ts')
const { CHUNK_BYTES, sha256 } = await importSource('loader/chunk.ts')

const STATE = { size: 3 * CHUNK_BYTES, etag: '"1"', lastModified: null }
const chunkOf = (seed, length = CHUNK_BYTES) => Uint8Array.from({ length }, (_, i) => Math.imul(i + seed, 2654435761) >>> 24)
const room = () => new Uint8Array(CHUNK_BYTES)

async function openPack(root, makeRoom) {
  const folder = await (await openNodeStore(root)).folder('model')
  return Pack.open(folder, 'downloads', { source: 'somewhere' }, makeRoom)
}

/** A pack with three chunks of 'a' (the last is short) and one of 'b', closed; and how to open it. */
async function filledPack() {
  const root = temporaryFolder()
  const pack = await openPack(root)
  pack.begin('a', STATE)
  pack.begin('b', STATE)
  for (const [file, index, bytes] of CHUNKS) await pack.put(file, index, bytes, await sha256(bytes))
  pack.commit()
  pack.close()
  return { root, journal: join(root, 'model/downloads.journal'), data: join(root, 'model/downloads.data') }
}
const CHUNKS = [['a', 0, chunkOf(1)], ['a', 1, chunkOf(2)], ['b', 0, chunkOf(3)], ['a', 2, chunkOf(4, 1000)]]

/** How many chunks come back; each must be right. */
async function countRight(pack) {
  let right = 0
  for (const [file, index, bytes] of CHUNKS) {
    const found = await pack.read(file, index, room())
    if (!found) continue
    assert.deepEqual(Buffer.compare(found, bytes), 0, `${file} ${index}`)
    right++
  }
  return right
}

describe('a pack', () => {
  it('gives back what was kept, after it was opened again', async () => {
    const { root } = await filledPack()
    const pack = await openPack(root)
    assert.equal(await countRight(pack), 4)
    assert.equal(pack.committed, true)
    assert.deepEqual(pack.state('a'), STATE)
    assert.equal(pack.has('a', 3), false)
    pack.close()
  })

  it('forgets a file that begins anew, and uses its room again', async () => {
    const { root, data } = await filledPack()
    const pack = await openPack(root)
    const before = readFileSync(data).length
    pack.begin('a', { ...STATE, etag: '"2"' })
    assert.equal(pack.committed, false)
    assert.equal(await countRight(pack), 1)
    const bytes = chunkOf(9)
    await pack.put('a', 1, bytes, await sha256(bytes))
    assert.equal(Buffer.compare(await pack.read('a', 1, room()), bytes), 0)
    pack.close()
    assert.equal(readFileSync(data).length, before)
  })

  it('that loses chunks gives back their room behind the last one that stays', async () => {
    const { root, data } = await filledPack()
    const pack = await openPack(root)
    assert.equal(pack.loseWhere((file, chunk) => file === 'c' || chunk > 6), false)
    assert.equal(pack.loseWhere((file, chunk) => file === 'b' || chunk > 0), true)
    assert.equal(readFileSync(data).length, CHUNK_BYTES)
    pack.close()
    assert.equal(await countRight(await openPack(root)), 1)
  })

  it('keeps that a file is missing at its source', async () => {
    const root = temporaryFolder()
    const pack = await openPack(root)
    pack.begin('a', null)
    pack.close()
    assert.equal((await openPack(root)).state('a'), null)
  })

  it('of another form is begun anew', async () => {
    const { root, journal } = await filledPack()
    writeFileSync(journal, '{"pack": 7}\n')
    assert.equal(await countRight(await openPack(root)), 0)
  })

  it('whose journal is cut anywhere gives only right chunks, and can be filled again', async () => {
    const { root, journal, data } = await filledPack()
    const [whole, bytesOfAll] = [readFileSync(journal), readFileSync(data)]
    let most = 0
    for (let length = 0; length <= whole.length; length += 7) {
      writeFileSync(journal, whole.subarray(0, length))
      writeFileSync(data, bytesOfAll)
      const pack = await openPack(root)
      most = Math.max(most, await countRight(pack))
      pack.begin('c', STATE)
      const bytes = chunkOf(5, 100)
      await pack.put('c', 0, bytes, await sha256(bytes))
      pack.close()
      assert.equal(Buffer.compare(await (await openPack(root)).read('c', 0, room()), bytes), 0, `after ${length} bytes`)
    }
    assert.ok(most >= 3)
  })

  it('whose journal has a wrong byte anywhere gives only right chunks', async () => {
    const { root, journal } = await filledPack()
    const whole = readFileSync(journal)
    for (let at = 0; at < whole.length; at += 5) {
      const flipped = Buffer.from(whole)
      flipped[at] ^= 1 << (at % 8)
      writeFileSync(journal, flipped)
      const pack = await openPack(root)
      await countRight(pack)
      pack.close()
    }
  })

  it('whose data has a wrong byte, or is cut, loses that chunk and no other', async () => {
    for (const damage of [(bytes) => (bytes[CHUNK_BYTES + 77] ^= 4), (bytes) => bytes.subarray(0, 3 * CHUNK_BYTES + 10)]) {
      const { root, data } = await filledPack()
      const bytes = readFileSync(data)
      const result = damage(bytes)
      writeFileSync(data, typeof result === 'number' ? bytes : result)
      const pack = await openPack(root)
      assert.equal(await countRight(pack), 3)
      pack.close()
      assert.equal(await countRight(await openPack(root)), 3, 'and knows that afterwards')
    }
  })

  it('that is full keeps what it has, without an error, after it asked once for room', async () => {
    const { root } = await filledPack()
    let asked = 0
    const pack = await openPack(root, async () => ++asked < 0)
    const { prototype } = Uint8Array
    const huge = Object.create(prototype) // no bytes that could be written: the write fails as on a full disk
    await pack.put('a', 7, huge, 'hash')
    assert.equal(asked, 1)
    assert.equal(pack.full, true)
    assert.equal(await countRight(pack), 4)
  })
})

describe('a journal’s text', () => {
  it('that is no journal says nothing', () => assert.equal(readContents('hello\n{}\n\n').about, undefined))
})

describe('the lock of a folder', () => {
  it('is one user’s; the next one waits, hears of it, and gets it', async () => {
    const store = await openNodeStore(temporaryFolder())
    const release = await store.lock('model')
    assert.equal(await store.lock('model'), undefined)
    let told = 0
    const second = store.lock('model', () => told++)
    await new Promise((resolve) => setTimeout(resolve, 50))
    assert.equal(told, 1)
    release()
    ;(await second)()
    ;(await store.lock('model'))()
  })

  it('ends with a process that is killed', async () => {
    const root = temporaryFolder()
    const { signal, stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', `
      import { importSource } from '${new URL('./support/source.mjs', import.meta.url)}'
      const { openNodeStore } = await importSource('cache/node-store.ts')
      const store = await openNodeStore(${JSON.stringify(root)})
      console.log(typeof await store.lock('model'))
      process.kill(process.pid, 'SIGKILL')`])
    assert.equal(String(stdout).trim(), 'function')
    assert.equal(signal, 'SIGKILL')
    const release = await (await openNodeStore(root)).lock('model')
    assert.equal(typeof release, 'function')
    release()
  })
})

describe('the cache’s folder', () => {
  it('is where XDG says, if that is a whole path', () => {
    const before = process.env.XDG_CACHE_HOME
    process.env.XDG_CACHE_HOME = '/some/where'
    assert.equal(cacheFolder(), '/some/where/qwasm')
    process.env.XDG_CACHE_HOME = 'relative'
    assert.match(cacheFolder(), /^\/.*qwasm/)
    assert.doesNotMatch(cacheFolder(), /relative/)
    if (before === undefined) delete process.env.XDG_CACHE_HOME
    else process.env.XDG_CACHE_HOME = before
  })
})
