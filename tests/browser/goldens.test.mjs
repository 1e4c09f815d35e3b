// Every golden model in Chromium, in both modules, through the public API: logits, greedy ids, and the bits that Node.js computes.
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { loadModel } from '../../dist/node.js'
import { launchChromium } from '../support/browsers.mjs'
import { goldenCases, goldenModels, hashBits, root, worstDeviation } from '../support/golden.mjs'
import { startSite, watchedPage } from '../support/site.mjs'

let browser, site, page

before(async () => {
  browser = await launchChromium()
  site = await startSite()
  page = await watchedPage(browser)
  await page.goto(`${site.url}blank/`)
})
after(async () => {
  await browser?.close()
  await site?.close()
})

/** Runs in the page: loads a model and computes every case; logits come back as base64, for they are megabytes. */
async function computeInPage({ folder, variant, contextLength, cases }) {
  const { loadModel } = await import('/dist/browser.js')
  const base64 = array => new Promise((resolve, reject) => {
    const reader = new FileReader()
    reader.onload = () => resolve(reader.result.slice(reader.result.indexOf(',') + 1))
    reader.onerror = () => reject(reader.error)
    reader.readAsDataURL(new Blob([array]))
  })
  const model = await loadModel(new URL(folder, location.origin), { variant, contextLength })
  const results = []
  for (const { ids, positions, maxTokens } of cases) {
    const logits = await model.logits(ids, { positions })
    const { ids: greedy } = await model.generate(ids, { temperature: 0, maxTokens }).result()
    results.push({ logits: await base64(logits), greedy })
  }
  const { info } = model
  await model.dispose()
  return { variant: info.variant, threads: info.threads, results }
}

/** Hashes of the logits that Node.js computes for the same cases. */
async function hashesInNode(folder, contextLength, cases) {
  const model = await loadModel(join(root, folder), { contextLength })
  const hashes = []
  for (const { ids, positions } of cases) hashes.push(hashBits(await model.logits(ids, { positions })))
  await model.dispose()
  return hashes
}

function floats(base64) {
  const bytes = Buffer.from(base64, 'base64')
  return new Float32Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength))
}

for (const { name, folder, goldenFolder } of goldenModels) {
  describe(`${name} in Chromium`, () => {
    const cases = goldenCases(goldenFolder)
    const contextLength = Math.max(...cases.map(({ ids, greedy }) => ids.length + greedy.length))
    let expectedHashes

    before(async () => {
      expectedHashes = await hashesInNode(folder, contextLength, cases)
    })

    for (const variant of ['simd', 'simd-single']) {
      it(`agrees with transformers and with Node.js, bit for bit, in ${variant}`, async () => {
        const asked = cases.map(({ ids, positions, greedy }) => ({ ids, positions, maxTokens: greedy.length }))
        const computed = await page.evaluate(computeInPage, { folder: `/${folder}/`, variant, contextLength, cases: asked })
        assert.equal(computed.variant, variant)
        if (variant === 'simd-single') assert.equal(computed.threads, 1)
        computed.results.forEach((result, index) => {
          const golden = cases[index]
          const logits = floats(result.logits)
          const worst = worstDeviation(logits, golden.logits, golden.vocabSize)
          assert.ok(worst <= 1, `${golden.name}: the worst logit is ${worst} tolerances away`)
          assert.deepEqual(result.greedy, golden.greedy, `${golden.name}: greedy ids`)
          assert.equal(hashBits(logits), expectedHashes[index], `${golden.name}: the bits that Node.js computes`)
        })
      })
    }
  })
}

it('complains about nothing in the console', () => {
  assert.deepEqual(page.complaints, [])
})
