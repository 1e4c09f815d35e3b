// Reading a model's files from a server: every byte that is handed over stands where it was asked, or an error says why not.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { MISBEHAVIOURS, behaviour } from '../support/misbehaviours.mjs'
import { loadFile } from '../support/right-loader.mjs'
import { check, quickly, read, readWhole, serve, SIZE, transport, truth } from './support/transport.mjs'

const { UrlFolder } = transport

/** Loads a file as a right loader does: all of it, or an error. */
async function load(source, file) {
  const take = (part, position) => check(file, part, position)
  assert.equal(await loadFile(transport, source, file, { take, usualSize: SIZE }), truth[file].length)
}

describe('a server', { concurrency: 8 }, () => {
  for (const { name, tells, outcome, behave, seenBy } of MISBEHAVIOURS) {
    if (seenBy !== 'transport') continue
    it(`(${name}) ${tells}: ${outcome.join(' or ')}`, { timeout: 30_000 }, async () => {
      const { url } = await serve(behave)
      const source = new UrlFolder(url, { patience: quickly({ stall: 150 }) })
      const met = new Set()
      for (const file of ['config.json', 'model.safetensors']) {
        try {
          await load(source, file)
        } catch (error) {
          if (!error.code || error.code.startsWith('ERR_')) throw error
          met.add(error.code)
          assert.ok(outcome.includes(error.code), error.message)
          assert.ok(error.message.includes(file), error.message)
        }
      }
      if (met.size === 0) assert.ok(outcome.includes('right'))
      await source.close()
    })
  }

  it('that sends nothing gives nothing, and says that the file is empty', async () => {
    const { url } = await serve(() => ({ status: 200, headers: { 'Content-Length': 0 } }))
    const source = new UrlFolder(url)
    assert.equal((await source.stat('config.json')).size, 0)
    assert.equal((await read(source, 'config.json')).bytes.length, 0)
    assert.equal((await read(source, 'model.safetensors', 0, 8)).bytes.length, 0)
  })
})

describe('ranges', () => {
  it('that are served are all that is asked for', async () => {
    const server = await serve()
    const source = new UrlFolder(server.url)
    await load(source, 'model.safetensors')
    const parts = [0, 1, 2, 3, 4].map((part) => [60_000 * part, 60_000 * part + 59_999])
    assert.deepEqual(server.requests.map(({ range }) => range), [[0, 0], ...parts])
    assert.equal(server.sent, SIZE + 1)
  })

  it('past the end are empty, those that end early are short, and both tell the size', async () => {
    for (const behave of [undefined, behaviour('whole')]) {
      const source = new UrlFolder((await serve(behave)).url)
      for (const [offset, length] of [
        [SIZE - 3, 3],
        [SIZE, 0],
        [SIZE + 5, 0],
      ]) {
        const { bytes, state } = await read(source, 'model.safetensors', offset, 10)
        assert.equal(bytes.length, length)
        assert.equal(state.size, SIZE)
      }
    }
  })

  it('of a server without ranges come from one body, whatever their order', async () => {
    const server = await serve(behaviour('whole'))
    const source = new UrlFolder(server.url)
    const at = (offset) => read(source, 'model.safetensors', offset, 50_000)
    await at(0)
    await Promise.all([at(50_000), at(100_000), at(200_000)])
    assert.equal(server.requests.length, 1)
    await at(100_000) // back: a new body
    await at(250_000)
    assert.equal(server.requests.length, 2)
    await source.close()
  })

  it('of servers that cut may be answered by parts: a byte that came is not asked for again', async () => {
    const server = await serve(behaviour('cut'))
    await read(new UrlFolder(server.url, { patience: quickly() }), 'model.safetensors', 1000, 200_000)
    assert.equal(server.sent, 200_000)
  })
})

describe('the state of a file', () => {
  it('is known without its bytes, with ranges and without', async () => {
    for (const [behave, requests] of [
      [undefined, 1],
      [behaviour('whole'), 1],
      [behaviour('hidden'), 2],
    ]) {
      const server = await serve(behave)
      const source = new UrlFolder(server.url)
      const { size, etag, lastModified } = await source.stat('model.safetensors')
      assert.equal(size, SIZE)
      assert.match(etag, /^"[0-9a-f-]+"$/)
      assert.match(lastModified, /GMT$/)
      assert.equal(server.requests.length, requests)
    }
  })
  it('of an empty file has no bytes', async () => {
    const source = new UrlFolder((await serve()).url)
    assert.equal((await source.stat('empty.txt')).size, 0)
    assert.equal((await readWhole(source, 'empty.txt')).size, 0)
  })
  it('of a missing file is that', async () => {
    const source = new UrlFolder((await serve()).url)
    assert.equal(await source.stat('nothing.json'), 'missing')
    assert.equal(await source.read('nothing.json', 0, 0, assert.fail), 'missing')
    assert.equal(await source.read('nothing.bin', 0, 8, assert.fail), 'missing')
  })
  it('has no size where only a compressed one is known', async () => {
    const source = new UrlFolder((await serve(behaviour('gzip'))).url)
    assert.equal((await source.stat('model.safetensors')).size, -1)
    assert.equal((await readWhole(source)).size, SIZE)
  })
  it('has a plain ETag, whatever compression makes of it', async () => {
    for (const etag of ['"a"', 'W/"a"', '"a-gzip"', '"a;gzip"', '"a--gzip"', 'W/"a-br"']) {
      const source = new UrlFolder((await serve((ask, plan) => void (plan.headers.ETag = etag))).url)
      assert.equal((await source.stat('config.json')).etag, '"a"')
    }
  })
})
