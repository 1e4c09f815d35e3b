// The rungs in Chromium, with cross-origin isolation and without; and loading from files that a person chose.
import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { launchChromium } from '../support/browsers.mjs'
import { goldenCases, root } from '../support/golden.mjs'
import { startSite, watchedPage } from '../support/site.mjs'
import { VARIANTS } from '../support/variants.mjs'

const demo = goldenCases('tests/golden/demo').find(({ name }) => name === 'add_thinking')
let browser

before(async () => {
  browser = await launchChromium()
})
after(() => browser?.close())

/** Opens the blank page of a site with the given options, runs `work(page)`, and closes all. */
async function onBlankPage(options, work) {
  const site = await startSite(options)
  const page = await watchedPage(browser)
  try {
    await page.goto(`${site.url}blank/`)
    return await work(page, site)
  } finally {
    await page.close()
    await site.close()
  }
}

/** Runs in the page: the rung of a load, and the greedy ids. */
async function greedyInPage({ ids, maxTokens, options }) {
  const { loadModel } = await import('/dist/browser.js')
  const files = document.querySelector('input')?.files
  try {
    const model = await loadModel(files ?? new URL('/models/demo/', location.origin), options)
    const result = await model.generate(ids, { temperature: 0, maxTokens }).result()
    const { variant, threads, why } = model.info
    await model.dispose()
    return { isolated: crossOriginIsolated, variant, threads, why, ids: result.ids }
  } catch (error) {
    return { code: error.code, message: error.message }
  }
}

const asked = { ids: demo.ids, maxTokens: demo.greedy.length, options: { dtype: 'exact' } }

/** A function that tells which modules a site's pages have asked for until then. */
function watchModules(site) {
  const asked = []
  site.server.on('request', ({ url }) => url.endsWith('.wasm') && asked.push(url.slice(url.lastIndexOf('/') + 1)))
  return () => asked
}

describe('a page that is cross-origin isolated', () => {
  it('runs relaxed SIMD with threads, and fetches no other module', async () => {
    await onBlankPage({}, async (page, site) => {
      const modules = watchModules(site)
      const result = await page.evaluate(greedyInPage, asked)
      assert.equal(result.variant, 'relaxed')
      assert.ok(result.threads >= 2)
      assert.equal(result.why, 'relaxed SIMD and threads are there')
      assert.deepEqual(result.ids, demo.greedy)
      assert.deepEqual(modules(), ['qwasm-relaxed.wasm'])
    })
  })

  it('runs any module that is asked for, and fetches no other', async () => {
    for (const variant of VARIANTS) {
      await onBlankPage({}, async (page, site) => {
        const modules = watchModules(site)
        const result = await page.evaluate(greedyInPage, { ...asked, options: { ...asked.options, variant } })
        assert.deepEqual([result.variant, result.why], [variant, 'it was asked for'])
        assert.deepEqual(result.ids, demo.greedy)
        assert.deepEqual(modules(), [`qwasm-${variant}.wasm`])
      })
    }
  })
})

describe('a page that is not cross-origin isolated', () => {
  it('runs the module without threads, gives the same tokens, and says why', async () => {
    await onBlankPage({ isolation: false }, async (page, site) => {
      const modules = watchModules(site)
      const result = await page.evaluate(greedyInPage, asked)
      assert.equal(result.isolated, false)
      assert.equal(result.variant, 'relaxed-single')
      assert.equal(result.threads, 1)
      assert.match(result.why, /isolat/i)
      assert.deepEqual(result.ids, demo.greedy)
      assert.deepEqual(modules(), ['qwasm-relaxed-single.wasm'])
      assert.deepEqual(page.complaints, [])
    })
  })

  it('refuses a forced threaded module with an error that names it', async () => {
    await onBlankPage({ isolation: false }, async page => {
      for (const variant of ['relaxed', 'simd']) {
        const result = await page.evaluate(greedyInPage, { ...asked, options: { variant } })
        assert.equal(result.code, 'environment')
        assert.match(result.message, new RegExp(`'${variant}'.*isolated`))
      }
    })
  })

  it('shows the reason on the demo page', async () => {
    const site = await startSite({ isolation: false })
    const page = await watchedPage(browser)
    try {
      await page.goto(site.url)
      await page.waitForSelector('#send:enabled')
      assert.match(await page.textContent('#rung'), /relaxed SIMD, 1 thread · no threads: .*isolat/i)
    } finally {
      await page.close()
      await site.close()
    }
  })
})

describe('files that a person chose', () => {
  const choose = async (page, names) => {
    await page.evaluate(() => document.body.append(Object.assign(document.createElement('input'), { type: 'file', multiple: true })))
    await page.setInputFiles('input', names.map(name => join(root, 'models/demo', name)))
  }

  it('load like a folder on a server', async () => {
    await onBlankPage({}, async page => {
      await choose(page, readdirSync(join(root, 'models/demo')))
      const result = await page.evaluate(greedyInPage, asked)
      assert.deepEqual(result.ids, demo.greedy)
    })
  })

  it('are refused by name where one is missing', async () => {
    await onBlankPage({}, async page => {
      await choose(page, readdirSync(join(root, 'models/demo')).filter(name => name !== 'config.json'))
      const result = await page.evaluate(greedyInPage, asked)
      assert.equal(result.code, 'missing')
      assert.match(result.message, /config\.json/)
    })
  })
})
