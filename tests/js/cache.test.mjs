// Loading through the cache: what is there is not fetched again, what is damaged or old is, whatever ended the last load.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { copyFileSync, existsSync, readdirSync, readFileSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, beforeEach, describe, it } from 'node:test'
import { caches, loadModel, loadTokenizer, LoadController } from '../../dist/node.js'
import { expectedBits, goldenCases, wordHash } from '../support/golden.mjs'
import { startHostileServer } from '../support/hostile-server.mjs'
import { demo, temporaryFolder } from './support/models.mjs'

const CHUNK = 2 ** 19
const home = temporaryFolder()
const folder = temporaryFolder(demo)
const [golden] = goldenCases('tests/golden/demo')
const WEIGHTS = statSync(join(folder, 'model.safetensors')).size

let server, url
before(async () => {
  process.env.XDG_CACHE_HOME = home
  server = await startHostileServer(folder)
  url = server.url
})
after(() => server.close())
beforeEach(() => {
  server.behave = () => undefined
  server.bandwidth = server.cutAfter = Infinity
  rmSync(join(home, 'qwasm'), { recursive: true, force: true })
})

/** Loads, checks the bits of the logits, ends; returns the info, the phases, and what the server was asked. */
async function load({ dtype = 'q4', bits = `demo ${dtype}`, source = url, ...options } = {}) {
  const requests = server.requests.length
  const sent = server.sent
  const reports = []
  const model = await loadModel(source, { dtype, onProgress: (progress) => reports.push(progress), ...options })
  try {
    const logits = await model.logits(golden.ids, { positions: golden.positions })
    assert.equal(wordHash(logits), expectedBits(bits, golden.name))
    for (const { loaded, total, fileLoaded, fileTotal } of reports) assert.ok(loaded <= total && fileLoaded <= fileTotal)
    const last = reports.at(-1)
    assert.equal(last.phase, 'ready')
    assert.equal(last.loaded, last.total)
    const phases = [...new Set(reports.map(({ phase }) => phase))]
    return { info: model.info, phases, asked: server.requests.slice(requests), sent: server.sent - sent, total: last.total }
  } finally {
    await model.dispose()
  }
}

const modelFolder = () => join(home, 'qwasm', readdirSync(join(home, 'qwasm'))[0])
const cachedFiles = () => readdirSync(modelFolder()).map((name) => join(modelFolder(), name))
const onlyStates = (asked) => asked.every(({ range, file }) => (range?.[0] === 0 && range[1] === 0) || !existsSync(join(folder, file)))

describe('a second load', () => {
  it('fetches nothing but the files’ states, and makes nothing anew', async () => {
    const first = await load()
    assert.deepEqual(first.phases, ['headers', 'download', 'ready'])
    const second = await load()
    assert.ok(onlyStates(second.asked), JSON.stringify(second.asked))
    assert.deepEqual(second.phases, ['headers', 'verify', 'ready'])
    assert.equal(second.total, second.info.weightBytes)
    assert.ok(second.total < WEIGHTS / 3)
  })

  it('in another dtype makes it from what was downloaded', async () => {
    await load()
    const { asked, total } = await load({ dtype: 'q8' })
    assert.ok(onlyStates(asked))
    assert.ok(total > WEIGHTS * 0.9)
    assert.deepEqual((await caches.list())[0].prepared, ['q4', 'q8'])
  })

  it('in exact mode reads what was downloaded, which needs no preparing', async () => {
    await load({ dtype: 'exact', bits: 'demo' })
    const { asked, phases } = await load({ dtype: 'exact', bits: 'demo' })
    assert.ok(onlyStates(asked))
    assert.deepEqual(phases, ['headers', 'verify', 'ready'])
    assert.deepEqual((await caches.list())[0].prepared, [])
  })

  it('of a file that changed fetches that file anew', async () => {
    await load()
    const config = join(folder, 'config.json')
    const { mtimeMs } = statSync(config)
    utimesSync(config, new Date(), new Date(mtimeMs + 60_000))
    const { asked } = await load()
    assert.deepEqual(asked.filter(({ file, range }) => file === 'config.json' && !range).length, 1)
    assert.ok(asked.filter(({ file }) => file === 'model.safetensors').every(({ range }) => range[1] === 0))
  })

  it('without a network uses what is there, and says so', async () => {
    await load()
    const gone = await startHostileServer(folder)
    const { info: online } = await load({ source: gone.url })
    assert.deepEqual(online.notes, [])
    await gone.close()
    const { info } = await load({ source: gone.url })
    assert.match(info.notes.join(), /could not be reached/)
  })

  it('from a server that tells no states is a first load', async () => {
    server.behave = (ask, plan) => void Object.assign(plan.headers, { ETag: null, 'Last-Modified': null })
    await load()
    const { phases } = await load()
    assert.deepEqual(phases, ['headers', 'download', 'ready'])
  })
})

describe('the option cache', () => {
  it('no-store keeps nothing', async () => {
    await load({ cache: 'no-store' })
    assert.deepEqual(await caches.list(), [])
  })
  it('reload fetches all of it, and keeps that', async () => {
    await load()
    const { sent } = await load({ cache: 'reload' })
    assert.ok(sent > WEIGHTS)
    assert.ok(onlyStates((await load()).asked))
  })
  it('force-cache and only-if-cached ask for nothing', async () => {
    await load()
    for (const cache of ['force-cache', 'only-if-cached']) assert.deepEqual((await load({ cache })).asked, [])
  })
  it('only-if-cached without a cache names what is missing', async () => {
    await assert.rejects(load({ cache: 'only-if-cached' }), { code: 'missing', message: /config\.json is not in the cache/ })
  })
})

describe('a damaged cache', () => {
  for (const [what, damage] of [
    ['a flipped byte', (bytes) => ((bytes[Math.floor(bytes.length * Math.random())] ^= 1 << Math.floor(8 * Math.random())), bytes)],
    ['a cut', (bytes) => bytes.subarray(0, Math.floor(bytes.length * Math.random()))],
    ['nothing left', () => Buffer.alloc(0)],
  ]) {
    it(`(${what} in any file) is found, fetched again, and right`, async () => {
      await load()
      await load({ dtype: 'q8' })
      const files = cachedFiles()
      assert.equal(files.length, 6)
      const whole = temporaryFolder(modelFolder())
      for (const path of files) {
        for (const name of readdirSync(whole)) copyFileSync(join(whole, name), join(modelFolder(), name))
        writeFileSync(path, damage(readFileSync(path)))
        await load()
        await load({ dtype: 'q8' })
      }
    })
  }
})

describe('a load that was ended', () => {
  it('by SIGKILL, at ten points, goes on with at most one chunk fetched twice', async () => {
    const script = join(temporaryFolder(), 'load.mjs')
    writeFileSync(script, `import { loadModel } from '${new URL('../../dist/node.js', import.meta.url)}'
      const model = await loadModel(process.argv[2], { dtype: 'q4', maxRequests: 1 })
      console.log('loaded')
      await new Promise((resolve) => setTimeout(resolve, 10_000))`)
    server.bandwidth = 12e6
    for (let point = 0; point < 10; point++) {
      rmSync(join(home, 'qwasm'), { recursive: true, force: true })
      const before = server.sent
      const process = spawn(globalThis.process.execPath, [script, url], { stdio: 'ignore' })
      await server.reached(before + Math.floor((WEIGHTS * (point + Math.random())) / 10))
      process.kill('SIGKILL')
      await new Promise((resolve) => process.once('exit', resolve))
      await load({ maxRequests: 1 })
      const all = server.sent - before
      const once = readdirSync(folder).reduce((sum, name) => sum + statSync(join(folder, name)).size, 0)
      // Of what was sent last, a chunk may have been on its way, one in part, and one not yet written down.
      assert.ok(all <= once + 3 * CHUNK, `${all} bytes of ${once} were sent, killed at point ${point}`)
    }
  })

  it('while weights are prepared or kept, at ten points, is right afterwards', async () => {
    await load()
    const forgetPrepared = () => cachedFiles().filter((path) => path.includes('prepared')).forEach((path) => rmSync(path))
    forgetPrepared()
    const begun = performance.now()
    await load()
    const took = performance.now() - begun
    for (let point = 1; point <= 10; point++) {
      forgetPrepared()
      const controller = new LoadController()
      const loading = loadModel(url, { dtype: 'q4', controller })
      setTimeout(() => controller.abort(), (took * point) / 10)
      await loading.then((model) => model.dispose(), ({ name }) => assert.equal(name, 'AbortError'))
      assert.ok(onlyStates((await load()).asked))
    }
  })

  it('by an abort goes on where it was', async () => {
    server.bandwidth = 10e6
    const controller = new LoadController()
    const loading = loadModel(url, { dtype: 'q4', controller })
    await server.reached(server.sent + WEIGHTS / 2)
    controller.abort()
    await assert.rejects(loading, { name: 'AbortError' })
    server.bandwidth = Infinity
    assert.ok((await load()).sent < WEIGHTS * 0.7)
  })

  it('by a lost server says so, and goes on when it is back', async () => {
    server.behave = ({ file, nth }, plan) => {
      if (file !== 'model.safetensors' || nth === first) return
      if (nth > first + 1) return { status: 403, body: 'no' }
      Object.assign(plan, { stop: 'close', stopAt: WEIGHTS / 2 })
    }
    const first = server.requests.filter(({ file }) => file === 'model.safetensors').length + 1
    await assert.rejects(load(), { code: 'http', message: /403/ })
    server.behave = () => undefined
    assert.ok((await load()).sent < WEIGHTS * 0.6)
  })
})

describe('a load that is paused', () => {
  it('asks for nothing until it is resumed', async () => {
    server.bandwidth = 10e6
    const controller = new LoadController()
    const loading = loadModel(url, { dtype: 'q4', controller })
    await server.reached(server.sent + WEIGHTS / 3)
    controller.pause()
    assert.equal(controller.paused, true)
    await new Promise((resolve) => setTimeout(resolve, 100))
    const asked = server.requests.length
    await new Promise((resolve) => setTimeout(resolve, 200))
    assert.equal(server.requests.length, asked)
    server.bandwidth = Infinity
    controller.resume()
    await (await loading).dispose()
  })

  it('from the start begins when it is resumed', async () => {
    const controller = new LoadController()
    controller.pause()
    const asked = server.requests.length
    const loading = loadModel(url, { dtype: 'q4', controller })
    await new Promise((resolve) => setTimeout(resolve, 200))
    assert.equal(server.requests.length, asked)
    controller.resume()
    await (await loading).dispose()
  })
})

describe('a source that changes while it is read', () => {
  it('is read anew from its new state', async () => {
    const changing = temporaryFolder(demo)
    const other = await startHostileServer(changing)
    other.behave = ({ file, nth }, plan) => {
      if (file !== 'model.safetensors' || nth !== 2) return
      Object.assign(plan, { stop: 'close', stopAt: WEIGHTS / 2 })
      utimesSync(join(changing, file), new Date(), new Date(1e12))
    }
    try {
      await load({ source: other.url })
      assert.ok(other.sentOf.get('model.safetensors') > WEIGHTS * 1.4, 'what came before the change was not used')
    } finally {
      await other.close()
    }
  })

  it('and goes on changing is an error', async () => {
    let times = 0
    server.behave = ({ file }, plan) => void (file === 'model.safetensors' && (plan.headers.ETag = `"${times++}"`))
    await assert.rejects(load(), { code: 'http', message: /model\.safetensors changed while it was loaded/ })
  })
})

describe('a loaded model', () => {
  it('has kept its weights, for a program may end with its first answer, and holds up nobody who loads it too', async () => {
    const model = await loadModel(url, { dtype: 'q4' })
    try {
      assert.deepEqual((await caches.list())[0].prepared, ['q4'])
      const { phases } = await load({ dtype: 'q8' })
      assert.ok(!phases.includes('wait'))
    } finally {
      await model.dispose()
    }
  })
})

describe('two loads at once', () => {
  it('of the same source share one download', async () => {
    server.bandwidth = 20e6
    const sent = server.sent
    const both = await Promise.all([load(), load()])
    assert.ok(both.some(({ phases }) => phases[0] === 'wait'))
    assert.ok(server.sent - sent < WEIGHTS * 1.5)
  })
})

describe('the list of kept models', () => {
  it('names them, their bytes, and what is prepared; and what was removed is gone', async () => {
    await load()
    const [model] = await caches.list()
    assert.deepEqual([model.source, model.hub], [url, null])
    assert.equal(model.complete, true)
    assert.deepEqual(model.prepared, ['q4'])
    assert.ok(Math.abs(model.lastUsed - Date.now()) < 60_000)
    const usage = await caches.usage()
    assert.equal(usage.bytes, model.bytes)
    assert.equal(usage.models, 1)
    assert.ok(usage.available > 0)
    assert.equal(await caches.remove('http://elsewhere/'), 0)
    assert.equal(await caches.remove(url), model.bytes)
    assert.deepEqual(await caches.list(), [])
  })

  it('keeps a model that is being loaded', async () => {
    server.bandwidth = 10e6
    const loading = loadModel(url, { dtype: 'q4' })
    await server.reached(server.sent + WEIGHTS / 3)
    await assert.rejects(caches.remove(), { code: 'wrong_state', message: /is being loaded/ })
    await (await loading).dispose()
  })

  it('does not call a tokenizer’s files a complete model', async () => {
    await (await loadTokenizer(url)).dispose()
    assert.equal((await caches.list())[0].complete, false)
  })

  it('loses unfinished downloads that were not touched for a week, and no others', async () => {
    const old = await startHostileServer(folder)
    await (await loadTokenizer(old.url)).dispose()
    const path = modelFolder()
    for (const name of readdirSync(path)) utimesSync(join(path, name), new Date(), new Date(Date.now() - 8 * 24 * 3600 * 1000))
    const fresh = await startHostileServer(folder)
    await (await loadTokenizer(fresh.url)).dispose()
    await load()
    assert.deepEqual((await caches.list()).map(({ source }) => source).sort(), [fresh.url, url].sort())
    await Promise.all([old.close(), fresh.close()])
  })
})

describe('a cache that cannot be written', () => {
  it('is gone without', async () => {
    writeFileSync(join(home, 'qwasm'), 'a file where the folder should be')
    await load()
    rmSync(join(home, 'qwasm'))
  })
})
