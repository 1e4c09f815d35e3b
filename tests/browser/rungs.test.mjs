// The rungs in Chromium: whatever a page lacks, the same tokens and the same bits come from a lower one, which says why. And loading from
// files that a person chose.
import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { temporaryFolder } from '../js/support/models.mjs'
import { launchChromium } from '../support/browsers.mjs'
import { writeBrokenModules } from '../support/broken-modules.mjs'
import { expectedBits, goldenCases, root } from '../support/golden.mjs'
import { computeInPage } from '../support/page-bits.mjs'
import { startSite, watchedPage } from '../support/site.mjs'
import { VARIANTS } from '../support/variants.mjs'
import { writeWorkerScripts } from '../support/worker-scripts.mjs'

const cases = goldenCases('tests/golden/demo').map(({ name, ids, positions, greedy }) => ({ name, ids, positions, greedy, maxTokens: greedy.length }))

const refuseMemoryBeyond = gigabytes => `const { Memory } = WebAssembly
  WebAssembly.Memory = function (options) {
    if (options.maximum > ${gigabytes * 16384}) throw new RangeError('refused')
    return new Memory(options)
  }`

const WORKERS = writeWorkerScripts({
  'without-shared-buffers': 'delete globalThis.SharedArrayBuffer',
  'with-2-gigabytes': refuseMemoryBeyond(2),
  'with-1-gigabyte': refuseMemoryBeyond(1),
  'without-shared-memory': refuseMemoryBeyond(0.5),
  // Chromium has no switch for it any more: this refuses whatever has the opcode of the i16 dot.
  'without-relaxed-simd': `const { validate } = WebAssembly
    WebAssembly.validate = bytes => !Array.from(bytes).join().includes('253,146,2') && validate(bytes)`,
})
const BROKEN = join(temporaryFolder(), 'broken')
writeBrokenModules(BROKEN, 'has-no-script')

const HIGHEST = 'relaxed SIMD and threads are there'

let browser, site, bareSite

before(async () => {
  const mounts = { '/workers/': WORKERS, '/broken/': BROKEN }
  browser = await launchChromium()
  site = await startSite({ mounts })
  bareSite = await startSite({ mounts, isolation: false })
})
after(async () => {
  await browser?.close()
  await site?.close()
  await bareSite?.close()
})

/** Runs `work(page)` on the blank page of a site. */
async function onBlankPage(work, { from = site, inBrowser = browser } = {}) {
  const page = await watchedPage(inBrowser)
  try {
    await page.goto(`${from.url}blank/`)
    return await work(page)
  } finally {
    await page.close()
  }
}

/** What a load by the page fails with. */
const failure = (page, options) => page.evaluate(async asked => {
  const { loadModel } = await import('/dist/browser.js')
  return loadModel(new URL('/models/demo/', location.origin), asked).then(() => 'it loaded', ({ code, message }) => `${code}: ${message}`)
}, options)

/** The modules that a site's pages ask for while `work` runs. */
async function modulesDuring(from, work) {
  const asked = []
  const note = ({ url }) => url.endsWith('.wasm') && asked.push(url.slice(url.lastIndexOf('/') + 1))
  from.server.on('request', note)
  await work()
  from.server.off('request', note)
  return [...new Set(asked)]
}

/** Loads the demo model exact and as q4: the rung, with transformers' greedy ids and the native build's bits. */
async function checkRung(page, { variant, why, options }) {
  for (const dtype of ['exact', 'q4']) {
    const asked = dtype === 'exact' ? cases : cases.map(one => ({ ...one, maxTokens: 0 }))
    const computed = await page.evaluate(computeInPage, { folder: '/models/demo/', options: { ...options, dtype }, cases: asked })
    assert.equal(computed.variant, variant)
    assert.ok(variant.endsWith('-single') ? computed.threads === 1 : computed.threads >= 2, `${computed.threads} threads`)
    assert.equal(computed.kernels, variant.replace('-single', ''))
    assert.match(computed.why, why)
    assert.deepEqual(computed.results.map(({ bits }) => bits), cases.map(({ name }) => expectedBits(dtype === 'exact' ? 'demo' : 'demo q4', name)))
    if (dtype === 'exact') assert.deepEqual(computed.results.map(({ greedy }) => greedy), cases.map(({ greedy }) => greedy))
  }
}

describe('a page that is cross-origin isolated', () => {
  it('runs relaxed SIMD with threads, and fetches no other module', async () => {
    const modules = await modulesDuring(site, () => onBlankPage(page => checkRung(page, { variant: 'relaxed', why: new RegExp(`^${HIGHEST}$`) })))
    assert.deepEqual(modules, ['qwasm-relaxed.wasm'])
  })

  for (const variant of VARIANTS) {
    it(`runs ${variant} where that is asked for, and fetches no other`, async () => {
      const rung = { variant, why: /^it was asked for$/, options: { variant } }
      assert.deepEqual(await modulesDuring(site, () => onBlankPage(page => checkRung(page, rung))), [`qwasm-${variant}.wasm`])
    })
  }

  it('runs without threads where SharedArrayBuffer is missing', () => onBlankPage(page =>
    checkRung(page, { variant: 'relaxed-single', why: /^no threads: SharedArrayBuffer is missing$/, options: { workerUrl: '/workers/without-shared-buffers.js' } })))

  for (const [script, granted] of [['with-2-gigabytes', 2], ['with-1-gigabyte', 1]]) {
    it(`keeps threads where only ${granted} GiB of memory are granted`, () => onBlankPage(page =>
      checkRung(page, { variant: 'relaxed', why: new RegExp(`^${HIGHEST}; memory of only ${granted} GiB was granted$`), options: { workerUrl: `/workers/${script}.js` } })))
  }

  it('runs without threads where shared memory is refused', () => onBlankPage(page =>
    checkRung(page, { variant: 'relaxed-single', why: /^no threads: shared memory of 1 GiB was refused$/, options: { workerUrl: '/workers/without-shared-memory.js' } })))

  it('runs without threads where their workers cannot be started', () => onBlankPage(page =>
    checkRung(page, { variant: 'relaxed-single', why: /^no threads: the workers of .*qwasm-relaxed\.mjs could not be started$/, options: { wasmUrl: '/broken/' } })))
})

describe('a page that is not cross-origin isolated', () => {
  const why = /^no threads: the page is not cross-origin isolated/

  it('runs the module without threads, and complains about nothing', () => onBlankPage(async page => {
    assert.equal(await page.evaluate(() => crossOriginIsolated), false)
    assert.deepEqual(await modulesDuring(bareSite, () => checkRung(page, { variant: 'relaxed-single', why })), ['qwasm-relaxed-single.wasm'])
    assert.deepEqual(page.complaints, [])
  }, { from: bareSite }))

  it('refuses a forced threaded module with an error that names it', () => onBlankPage(async page => {
    for (const variant of ['relaxed', 'simd']) assert.match(await failure(page, { variant }), new RegExp(`environment: .*'${variant}'.*isolated`))
  }, { from: bareSite }))

  it('shows the reason on the demo page', () => onBlankPage(async page => {
    await page.goto(bareSite.url)
    await page.waitForSelector('#send:enabled')
    assert.match(await page.textContent('#rung'), /relaxed SIMD, 1 thread · no threads: .*isolat/i)
  }, { from: bareSite }))
})

describe('an engine without relaxed SIMD', () => {
  const options = { workerUrl: '/workers/without-relaxed-simd.js' }
  const why = /^no relaxed SIMD: this browser or Node\.js does not have it/

  it('runs plain SIMD with threads', () => onBlankPage(page => checkRung(page, { variant: 'simd', why, options })))

  it('runs plain SIMD without threads where the page is not isolated', () =>
    onBlankPage(page => checkRung(page, { variant: 'simd-single', why: /no relaxed SIMD: .*; no threads: /, options }), { from: bareSite }))

  it('refuses a forced module with relaxed SIMD', () => onBlankPage(async page => {
    assert.match(await failure(page, { ...options, variant: 'relaxed' }), /^environment: .*'relaxed'.*no relaxed SIMD/)
  }))
})

describe('Chromium on a processor without SIMD', () => {
  let old

  before(async () => {
    old = await launchChromium('--js-flags=--no-enable-sse4-1') // what V8 needs for it
  })
  after(() => old?.close())

  it('is an error that says so', () => onBlankPage(async page => {
    assert.match(await failure(page, {}), /^environment: .*has no WebAssembly SIMD/)
  }, { inBrowser: old }))
})

describe('files that a person chose', () => {
  const choose = async (page, names) => {
    await page.evaluate(() => document.body.append(Object.assign(document.createElement('input'), { type: 'file', multiple: true })))
    await page.setInputFiles('input', names.map(name => join(root, 'models/demo', name)))
  }
  const greedyInPage = async ({ ids, maxTokens }) => {
    const { loadModel } = await import('/dist/browser.js')
    try {
      const model = await loadModel(document.querySelector('input').files, { dtype: 'exact' })
      const result = await model.generate(ids, { temperature: 0, maxTokens }).result()
      await model.dispose()
      return result.ids
    } catch (error) {
      return `${error.code}: ${error.message}`
    }
  }

  it('load like a folder on a server', () => onBlankPage(async page => {
    await choose(page, readdirSync(join(root, 'models/demo')))
    assert.deepEqual(await page.evaluate(greedyInPage, cases[0]), cases[0].greedy)
  }))

  it('are refused by name where one is missing', () => onBlankPage(async page => {
    await choose(page, readdirSync(join(root, 'models/demo')).filter(name => name !== 'config.json'))
    assert.match(await page.evaluate(greedyInPage, cases[0]), /^missing: .*config\.json/)
  }))
})
