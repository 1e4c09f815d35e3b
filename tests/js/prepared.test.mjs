// Prepared weights are kept while the model rests: in sittings, beside which the cache is free.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { temporaryFolder } from './support/models.mjs'
import { importSource } from './support/source.mjs'

const { CHUNK_BYTES, chunksOf, Control, keepPrepared, ModelCache, openNodeStore, Queue, restorePrepared, sha256 } = await importSource(
  'cache/prepared.ts', 'cache/model-cache.ts', 'cache/node-store.ts', 'loader/chunk.ts', 'worker/queue.ts')

const ORIGIN = { source: 'https://somewhere/model/' }
const NAME = { layout: 'q4-0123', version: 'one' }
const WEIGHTS = Uint8Array.from({ length: 5.5 * CHUNK_BYTES }, (_, i) => Math.imul(i, 2654435761) >>> 24)
const CHUNKS = chunksOf(WEIGHTS.length)
const memory = () => WEIGHTS

/** A rest that ends after every `chunks` chunks; `between` runs before each of its sittings. */
function restOf(chunks, between = async () => {}) {
  const rest = { sittings: 0, begins: async () => (await between(rest.sittings++), (left = chunks)), lasts: async () => --left > 0 }
  let left
  return rest
}

/** A store in which `written` counts the bytes, and no more than `most` may lie. */
async function countingStore(most = Infinity) {
  const store = await openNodeStore(temporaryFolder())
  const sizes = new Map()
  const counted = { written: 0 }
  const folder = async name => {
    const own = await store.folder(name)
    const open = async path => {
      const file = await own.open(path)
      sizes.set(path, file.size())
      const write = (bytes, at) => {
        const size = Math.max(sizes.get(path), at + bytes.length)
        if ([...sizes.values()].reduce((a, b) => a + b) - sizes.get(path) + size > most) throw new Error('full')
        sizes.set(path, size)
        file.write(bytes, at)
        counted.written += bytes.length
      }
      const truncate = size => {
        sizes.set(path, size)
        file.truncate(size)
      }
      return { size: () => file.size(), read: (bytes, at) => file.read(bytes, at), write, truncate, close: () => file.close() }
    }
    const others = ['readText', 'remove', 'list'].map(method => [method, (...args) => own[method](...args)])
    return { open, ...Object.fromEntries(others) }
  }
  const others = ['folders', 'remove', 'quota', 'lock'].map(method => [method, (...args) => store[method](...args)])
  return Object.assign(counted, { folder, ...Object.fromEntries(others) })
}

/** A model's cache as a load leaves it: closed. */
async function loadedCache(store, files = {}) {
  const cache = await ModelCache.open(store, ORIGIN)
  for (const [file, bytes] of Object.entries(files)) {
    cache.downloads.begin(file, { size: bytes.length, etag: null, lastModified: null })
    for (let i = 0; i < chunksOf(bytes.length); i++) {
      const chunk = bytes.slice(i * CHUNK_BYTES, (i + 1) * CHUNK_BYTES)
      await cache.downloads.put(file, i, chunk, await sha256(chunk))
    }
  }
  cache.downloads.commit()
  cache.close()
  return cache
}

async function restored(store) {
  const cache = await ModelCache.open(store, ORIGIN)
  try {
    const bytes = new Uint8Array(WEIGHTS.length)
    const there = await restorePrepared(await cache.openPrepared(NAME.layout, NAME.version), () => bytes, () => {})
    return there && Buffer.compare(bytes, WEIGHTS) === 0
  } finally {
    cache.close()
  }
}

describe('keeping prepared weights', () => {
  it('goes on in the next rest where the last one ended, and lets others to the cache between', async () => {
    const store = await countingStore()
    const cache = await loadedCache(store)
    const rest = restOf(2, async sitting => {
      const other = await ModelCache.open(store, ORIGIN)
      assert.ok(other, `the cache is taken before sitting ${sitting}`)
      other.close()
    })
    await keepPrepared(() => cache.reopen(), NAME, memory, rest)
    assert.ok(rest.sittings >= CHUNKS / 2)
    assert.ok(store.written < WEIGHTS.length + 10_000, `${store.written} bytes were written for ${WEIGHTS.length}`)
    assert.ok(await restored(store))
  })

  it('that was interrupted for good is found incomplete, and what is there is used at the next time', async () => {
    const store = await countingStore()
    const cache = await loadedCache(store)
    const gone = restOf(3, async sitting => {
      if (sitting === 1) throw new Error('the tab was closed')
    })
    await assert.rejects(keepPrepared(() => cache.reopen(), NAME, memory, gone), /the tab was closed/)
    assert.equal(await restored(store), false)
    await keepPrepared(() => cache.reopen(), NAME, memory, restOf(Infinity))
    assert.ok(store.written < WEIGHTS.length + 10_000)
    assert.ok(await restored(store))
  })

  it('does not bring back a model that was removed meanwhile', async () => {
    const store = await countingStore()
    const cache = await loadedCache(store)
    const remove = async sitting => sitting === 1 && store.remove((await store.folders())[0])
    await keepPrepared(() => cache.reopen(), NAME, memory, restOf(2, remove))
    assert.deepEqual(await store.folders(), [])
  })

  it('ends where another has the cache', async () => {
    const store = await countingStore()
    const cache = await loadedCache(store)
    const other = await ModelCache.open(store, ORIGIN)
    await keepPrepared(() => cache.reopen(), NAME, memory, restOf(Infinity))
    other.close()
    assert.equal(await restored(store), false)
  })

  it('gives up what they were made of where there is no room for both', async () => {
    const files = { 'config.json': new Uint8Array(700), 'model.safetensors': WEIGHTS }
    const headers = 5 * CHUNK_BYTES // config.json's chunk and the first four of the weights stay
    for (const [room, fits] of [[headers + WEIGHTS.length + CHUNK_BYTES, true], [headers + WEIGHTS.length - CHUNK_BYTES, false]]) {
      const store = await countingStore(room)
      const cache = await loadedCache(store, files)
      await keepPrepared(() => cache.reopen(), NAME, memory, restOf(Infinity))
      assert.equal(await restored(store), fits)
    }
  })
})

describe('the rest of a queue', () => {
  const control = new Control()
  const after = (ms) => new Promise(resolve => setTimeout(resolve, ms))

  it('is there before the first call', () => new Queue(2).rest())

  it('begins a moment after the last call that runs, not in the gap before one that follows', async () => {
    const queue = new Queue(2)
    const calls = [queue.run(control, () => after(100)), queue.run(control, () => after(30)), queue.run(control, () => after(10))]
    let rests = false
    const rest = queue.rest().then(() => (rests = true))
    await Promise.all(calls)
    await after(50)
    await queue.run(control, () => after(600))
    assert.equal(rests, false)
    await rest
  })
})
