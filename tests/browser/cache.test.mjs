// The cache in browsers: what was downloaded and prepared is used again, in Chromium's and Firefox's private file system; WebKit goes without.
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, beforeEach, describe, it } from 'node:test'
import { launchChromium, launchFirefox, launchWebKit } from '../support/browsers.mjs'
import { expectedBits, goldenCases, root } from '../support/golden.mjs'
import { startSite, watchedPage } from '../support/site.mjs'

const [golden] = goldenCases('tests/golden/demo')
const CHUNK = 2 ** 19
const BITS = expectedBits('demo q4', golden.name)
let chromium, site, asked

before(async () => {
  site = await startSite()
  site.server.on('request', ({ url, headers }) => url.startsWith('/models/') && asked.push(headers.range ?? 'whole'))
  chromium = await launchChromium()
})
beforeEach(() => {
  asked = []
})
after(async () => {
  await chromium?.close()
  await site?.close()
})

/** Runs in a page and must stand alone: loads, waits until what was prepared is kept, gives the bits of the logits and what was done. */
async function loadInPage({ ids, positions, options, settle, mark }) {
  const { loadModel, caches } = await import('/dist/browser.js')
  const phases = new Set()
  const start = performance.now()
  const model = await loadModel('/models/demo/', { dtype: 'q4', ...options, onProgress: ({ phase }) => phases.add(phase) })
  const seconds = (performance.now() - start) / 1000
  const logits = await model.logits(ids, { positions })
  let hash = 2166136261
  for (const word of new Uint32Array(logits.buffer)) hash = Math.imul(hash ^ word, 16777619)
  for (let wait = 0; settle && wait < 200 && !(await caches.list())[0]?.prepared.includes('q4'); wait++) await new Promise(resolve => setTimeout(resolve, 20))
  const list = await caches.list()
  if (mark) window[mark] = true
  await model.dispose()
  return { bits: (hash >>> 0).toString(16).padStart(8, '0'), phases: [...phases], list, seconds, notes: model.info.notes }
}

/** The demo model's manifest, as `qwasm manifest` would write it. */
function demoManifest() {
  const files = {}
  for (const name of readdirSync(join(root, 'models/demo')).filter(name => /\.(json|jinja|safetensors)$/.test(name))) {
    const bytes = readFileSync(join(root, 'models/demo', name))
    const sha256 = []
    for (let at = 0; at < bytes.length; at += CHUNK) sha256.push(createHash('sha256').update(bytes.subarray(at, at + CHUNK)).digest('hex'))
    files[name] = { size: bytes.length, sha256 }
  }
  return { version: 1, chunkBytes: CHUNK, files }
}

const args = { ids: golden.ids, positions: golden.positions, options: {}, settle: true }

/** Damages in turn each file that the cache has in the page's origin; `damage` is a flip or a cut. Gives the files' count. */
async function damageInPage({ index, cut }) {
  const root = await (await navigator.storage.getDirectory()).getDirectoryHandle('qwasm')
  const files = []
  for await (const model of root.values()) for await (const file of model.values()) files.push(file)
  files.sort((a, b) => a.name < b.name ? -1 : 1)
  const handle = files[index]
  const bytes = new Uint8Array(await (await handle.getFile()).arrayBuffer())
  const at = Math.floor(bytes.length * Math.random())
  bytes[at] ^= 1 << Math.floor(8 * Math.random())
  const writable = await handle.createWritable()
  await writable.write(cut ? bytes.subarray(0, at) : bytes)
  await writable.close()
  return files.length
}

async function onPage(work) {
  const context = await chromium.newContext()
  const page = await watchedPage(context)
  try {
    await page.goto(`${site.url}blank/`)
    await work(page, context)
  } finally {
    await context.close()
  }
}

describe('Chromium', () => {
  it('keeps a model: the second load fetches its files’ states only, with the same logits', () => onPage(async page => {
    const first = await page.evaluate(loadInPage, args)
    assert.equal(first.bits, BITS)
    assert.deepEqual(first.phases, ['headers', 'download', 'ready'])
    assert.deepEqual(first.list.map(({ source, complete, prepared }) => [source, complete, prepared]), [[`${site.url}models/demo/`, true, ['q4']]])
    asked = []
    const second = await page.evaluate(loadInPage, args)
    assert.equal(second.bits, BITS)
    assert.deepEqual(second.phases, ['headers', 'verify', 'ready'])
    assert.ok(asked.length > 0 && asked.every(range => range === 'bytes=0-0'), asked.join())
    assert.deepEqual(page.complaints.filter(line => !line.includes('404')), [])
  }))

  it('finds damage in any file of the cache and fetches that again', () => onPage(async page => {
    await page.evaluate(loadInPage, args)
    for (const cut of [false, true]) {
      for (let index = 0; index < 4; index++) {
        assert.equal(await page.evaluate(damageInPage, { index, cut }), 4)
        assert.equal((await page.evaluate(loadInPage, args)).bits, BITS)
      }
    }
  }))

  it('keeps weights while the model rests: not beside an answer', () => onPage(async page => {
    const { during, after } = await page.evaluate(async url => {
      const { caches, loadModel } = await import('/dist/browser.js')
      const model = await loadModel(url, { dtype: 'q4' })
      const during = []
      let ended = false
      const answer = model.generate('One', { maxTokens: 400, ignoreEos: true })
      answer.result().then(() => (ended = true))
      await answer[Symbol.asyncIterator]().next() // by then it runs
      while (!ended) during.push((await caches.list())[0].bytes)
      let after
      do [after] = await caches.list()
      while (!after.prepared.includes('q4'))
      await model.dispose()
      return { during, after: after.bytes }
    }, `${site.url}models/demo/`)
    assert.ok(Math.max(...during) - Math.min(...during) < 10_000, `no chunk is written, journals aside: ${during}`)
    assert.ok(after - Math.max(...during) > 100_000)
  }))

  it('lets two tabs load the same model at once', () => onPage(async (page, context) => {
    const other = await context.newPage()
    await other.goto(`${site.url}blank/`)
    const both = await Promise.all([page, other].map(tab => tab.evaluate(loadInPage, args)))
    for (const { bits } of both) assert.equal(bits, BITS)
  }))

  it('goes on after a tab was closed in the middle of a download, at ten points', () => onPage(async (_, context) => {
    for (let point = 0; point < 10; point++) {
      const tab = await context.newPage()
      await tab.goto(`${site.url}blank/`)
      const loading = tab.evaluate(loadInPage, { ...args, options: point === 0 ? { cache: 'reload' } : {} }).catch(() => {})
      await new Promise(resolve => setTimeout(resolve, 30 + 40 * point * Math.random()))
      await tab.close()
      await loading
    }
    const tab = await context.newPage()
    await tab.goto(`${site.url}blank/`)
    assert.equal((await tab.evaluate(loadInPage, args)).bits, BITS)
  }))

  it('loads without a cache where storage is full or refused', () => onPage(async page => {
    const session = await page.context().newCDPSession(page)
    await session.send('Storage.overrideQuotaForOrigin', { origin: new URL(site.url).origin, quotaSize: 1_500_000 })
    const { bits, list } = await page.evaluate(loadInPage, { ...args, settle: false })
    assert.equal(bits, BITS)
    assert.ok(list.every(({ complete, prepared }) => !complete && prepared.length === 0))
  }))

  it('takes what a pinned manifest names, and refuses what differs from it', () => onPage(async page => {
    const manifest = demoManifest()
    assert.equal((await page.evaluate(loadInPage, { ...args, options: { integrity: manifest } })).bits, BITS)
    asked = []
    assert.equal((await page.evaluate(loadInPage, { ...args, options: { integrity: manifest } })).bits, BITS)
    assert.deepEqual(asked, [], 'the hashes say that what is kept is right')
    manifest.files['model.safetensors'].sha256[6] = '0'.repeat(64)
    const failed = await page.evaluate(loadInPage, { ...args, options: { integrity: manifest } }).catch(error => error.message)
    assert.match(failed, /model\.safetensors: the bytes from 3145728 on are not those of the manifest/)
  }))
})

describe('Firefox', () => {
  it('keeps a model in its private file system', async () => {
    const firefox = await launchFirefox()
    try {
      const page = await firefox.newPage()
      await page.goto(`${site.url}blank/`)
      assert.equal((await page.evaluate(loadInPage, args)).bits, BITS)
      asked = []
      const second = await page.evaluate(loadInPage, args)
      assert.equal(second.bits, BITS)
      assert.deepEqual(second.phases, ['headers', 'verify', 'ready'])
      assert.ok(asked.every(range => range === 'bytes=0-0'), asked.join())
    } finally {
      await firefox.close()
    }
  })
})

describe('WebKit without a private file system', () => {
  it('loads, and keeps nothing', async () => {
    const webkit = await launchWebKit()
    try {
      await webkit.goto(`${site.url}blank/`)
      await webkit.evaluate(`(${loadInPage})(${JSON.stringify({ ...args, settle: false })}).then(result => (window.result = result), error => (window.result = { error: String(error) }))`)
      const result = await webkit.waitFor('return window.result')
      assert.equal(result.bits, BITS, result.error)
      assert.deepEqual(result.list, [])
    } finally {
      await webkit.close()
    }
  })
})
