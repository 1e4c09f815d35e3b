// Feeding an engine: what it wants is brought in order, by chunks, several at a time and few in memory; names and contents are looked at.
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, describe, it } from 'node:test'
import { startHostileServer } from '../support/hostile-server.mjs'
import { temporaryFolder } from './support/models.mjs'
import { importSource } from './support/source.mjs'

const { loadEngine } = await importSource('loader/load.ts')
const { ModelFiles } = await importSource('loader/chunks.ts')
const { ProgressMeter } = await importSource('loader/progress.ts')
const { UrlFolder } = await importSource('loader/url.ts')
const { openFolder } = await importSource('loader/node-folder.ts')
const { FilesSource } = await importSource('loader/files.ts')

const CHUNK = 2 ** 19
const SIZE = 100 * CHUNK + 12_345
const data = new Uint8Array(SIZE)
for (let i = 0; i < SIZE; i++) data[i] = Math.imul(i + 1, 2654435761) >>> 24
const folder = temporaryFolder()
writeFileSync(join(folder, 'weights.bin'), data)
writeFileSync(join(folder, 'config.json'), '{"a": 1}')

/** An engine that wants config.json, 8 bytes and 1,000 more of a header, then the given rows of one file; it keeps what it gets. */
function recorder(rows, { file = 'weights.bin', headers = [['config.json', 0, 0], [file, 0, 8], [file, 8, 1000]] } = {}) {
  const wants = [...headers, ...rows.map(([offset, length]) => [file, offset, length])]
  const got = []
  let next = 0
  return {
    got,
    pushes: 0,
    get weightsLayout() {
      return rows.length > 0 && got.filter(Boolean).length >= headers.length ? 'exact-1' : ''
    },
    nextWant() {
      if (next === wants.length) return got.filter(Boolean).length === wants.length ? 'loaded' : 'wait'
      if (next >= headers.length && this.weightsLayout === '') return 'wait'
      if (next === 2 && !got[1]) return 'wait' // where a header ends stands in its first bytes
      const [name, offset, length] = wants[next]
      return { id: next++, file: name, offset, length, optional: false }
    },
    push(id, parts, fileSize) {
      got[id] = { bytes: Buffer.concat(parts), fileSize, order: this.pushes++ }
    },
    pushMissing: (id) => (got[id] = { missing: true }),
    loaded: () => {},
  }
}

const ROWS = [
  [1008, 3 * CHUNK],
  [1008 + 3 * CHUNK, 8 * CHUNK + 5],
  [11 * CHUNK + 1013, 100],
  [15 * CHUNK + 7, 5 * CHUNK],
  [20 * CHUNK + 7, SIZE - 20 * CHUNK - 7],
]

/** Loads rows of weights.bin and checks every byte; gives the progress reports and the engine. */
async function loadRows(source, { rows = ROWS, maxRequests = 4, ...options } = {}) {
  const engine = recorder(rows, options)
  const reports = []
  const meter = new ProgressMeter((progress) => reports.push(progress))
  const files = new ModelFiles({ source, mode: 'default' })
  await loadEngine({ engine, files, cache: undefined, meter, maxRequests, phase: 'download', anew: false })
  meter.finish()
  rows.forEach(([offset, length], row) => {
    const { bytes, order } = engine.got[row + 3]
    assert.equal(Buffer.compare(bytes, data.subarray(offset, offset + length)), 0, `row ${row}`)
    assert.equal(order, row + 3, 'in order')
  })
  return { reports, engine }
}

const servers = []
after(() => Promise.all(servers.map((server) => server.close())))

/** A local folder as a source, closed in the end. */
async function openHere(path) {
  const source = await openFolder(path)
  servers.push(source)
  return source
}

async function serve(behave, options) {
  const server = await startHostileServer(folder, behave, options)
  servers.push(server)
  return server
}

describe('rows of weights', () => {
  it('come from a server, a folder and given files with every byte right', async () => {
    const server = await serve()
    for (const source of [
      new UrlFolder(server.url),
      await openHere(folder),
      new FilesSource([{ name: 'weights.bin', blob: new Blob([data]) }, { name: 'config.json', blob: new Blob(['{}']) }]),
    ]) {
      for (const maxRequests of [1, 4, 16]) await loadRows(source, { maxRequests })
      await source.close()
    }
  })

  it('are fetched by up to 12 chunks a request, chunks that are not wanted not at all, and those of the header once', async () => {
    const server = await serve()
    await loadRows(new UrlFolder(server.url))
    const ranges = server.requests.filter(({ file }) => file === 'weights.bin').map(({ range: [start, end] }) => [start / CHUNK, (end + 1) / CHUNK])
    for (const [start, end] of ranges) assert.ok(Number.isInteger(start) && end - start <= 12)
    const fetched = ranges.flatMap(([start, end]) => Array.from({ length: Math.ceil(end) - start }, (_, i) => start + i)).sort((a, b) => a - b)
    assert.deepEqual(fetched, [...Array(101).keys()].filter((chunk) => chunk < 12 || chunk > 14))
  })

  it('are right where the server ignores ranges', async () => {
    const server = await serve((ask, plan) => {
      if (ask.range) Object.assign(plan, { status: 200, start: 0, end: plan.size, headers: { ...plan.headers, 'Content-Range': null, 'Content-Length': plan.size } })
    })
    await loadRows(new UrlFolder(server.url))
    assert.ok(server.requests.length < 10)
  })

  it('are asked for by no more requests at a time than allowed', async () => {
    let open = 0
    let most = 0
    const source = await openHere(folder)
    const counting = {
      place: (file) => source.place(file),
      stat: (file) => source.stat(file),
      close: () => source.close(),
      async read(...args) {
        most = Math.max(most, ++open)
        await new Promise((resolve) => setTimeout(resolve, 5))
        return source.read(...args).finally(() => open--)
      },
    }
    await loadRows(counting, { maxRequests: 3 })
    assert.equal(most, 3)
  })

  it('are read ahead by a few chunks only, however slow the engine', async () => {
    let read = 0
    const source = await openHere(folder)
    const counting = { place: (f) => source.place(f), stat: (f) => source.stat(f), close: () => source.close(), read: (file, offset, ...rest) => ((read = Math.max(read, offset / CHUNK)), source.read(file, offset, ...rest)) }
    const rows = Array.from({ length: 99 }, (_, i) => [i * CHUNK + 1008, CHUNK])
    const engine = recorder(rows)
    let ahead = 0
    const push = engine.push
    engine.push = function (id, ...rest) {
      ahead = Math.max(ahead, read - Math.max(0, id - 3))
      return push.call(this, id, ...rest)
    }
    const files = new ModelFiles({ source: counting, mode: 'default' })
    await loadEngine({ engine, files, cache: undefined, meter: new ProgressMeter(() => {}), maxRequests: 16, phase: 'prepare', anew: false })
    assert.ok(ahead > 8 && ahead <= 40, `${ahead} chunks`)
  })

  it('have a progress that ends at their total, by file too, and never passes it', async () => {
    const server = await serve()
    const { reports } = await loadRows(new UrlFolder(server.url))
    const total = ROWS.reduce((sum, [, length]) => sum + length, 0)
    const last = reports.at(-1)
    assert.deepEqual([last.phase, last.loaded, last.total], ['ready', total, total])
    for (const { loaded, total, fileLoaded, fileTotal } of reports) assert.ok(loaded <= total && fileLoaded <= fileTotal)
    assert.ok(reports.some(({ phase, file, fileTotal }) => phase === 'download' && file === 'weights.bin' && fileTotal === total))
  })

  it('are right beyond 4 GiB', async () => {
    const at = 5 * 2 ** 30 + 77
    const byteAt = (offset) => Math.floor(offset / 1000) % 251
    const source = {
      place: (file) => file,
      stat: async () => ({ size: 2 ** 33, etag: null, lastModified: null }),
      close: async () => {},
      async read(file, offset, length, write) {
        write(Uint8Array.from({ length: length || 2 }, (_, i) => byteAt(offset + i)))
        return this.stat()
      },
    }
    const engine = recorder([[at, 2 * CHUNK]])
    const files = new ModelFiles({ source, mode: 'default' })
    await loadEngine({ engine, files, cache: undefined, meter: new ProgressMeter(() => {}), maxRequests: 4, phase: 'prepare', anew: false })
    const { bytes } = engine.got[3]
    for (const i of [0, 1, CHUNK, 2 * CHUNK - 1]) assert.equal(bytes[i], byteAt(at + i))
  })

  it('past the end of their file are an error that names it', async () => {
    const server = await serve()
    await assert.rejects(loadRows(new UrlFolder(server.url), { rows: [[SIZE - 10, 4 * CHUNK]] }), { code: 'invalid_file', message: /weights\.bin ends before byte/ })
  })

  it('of a file that is gone after its header are an error', async () => {
    const server = await serve(({ file, nth }) => (file === 'weights.bin' && nth > 1 ? { status: 404, body: '' } : undefined))
    await assert.rejects(loadRows(new UrlFolder(server.url)), { message: /weights\.bin/ })
  })
})

describe('file names from a model’s index', () => {
  for (const name of ['../secret', '/etc/passwd', 'a/../../b', 'http://elsewhere/x', 'a\\b', 'C:x', '', 'a//b', 'x?y', './x']) {
    it(`must stay inside the folder: ${JSON.stringify(name)} is refused`, async () => {
      await assert.rejects(loadRows(await openHere(folder), { headers: [[name, 0, 8]] }), { code: 'invalid_file' })
      await assert.rejects(loadRows(await openHere(folder), { file: name, headers: [['config.json', 0, 0]] }), { code: 'invalid_file' })
    })
  }
})

describe('what is no model file', () => {
  it('in a local folder is named: a Git LFS pointer', async () => {
    const local = temporaryFolder()
    writeFileSync(join(local, 'model.safetensors'), 'version https://git-lfs.github.com/spec/v1\n')
    await assert.rejects(loadRows(await openHere(local), { headers: [['model.safetensors', 0, 8]] }), {
      code: 'invalid_file',
      message: /model\.safetensors.*Git LFS/,
    })
  })
})
