// Firefox and WebKit: the demo page loads, answers rightly and says which rung it runs on; every kind of weights has the native build's bits
// and transformers' tokens, with cross-origin isolation and without; and a worker that ends without a word is noticed.
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { launchFirefox, launchWebKit } from '../support/browsers.mjs'
import { expectedBits, goldenCases } from '../support/golden.mjs'
import { computeInPage } from '../support/page-bits.mjs'
import { startSite } from '../support/site.mjs'
import { writeWorkerScripts } from '../support/worker-scripts.mjs'

const QUESTION = 'What is 347 + 85?'
const ANSWER = '347 + 85 = 432'

// Bodies of functions that run in the page.
const IS_READY = "return document.getElementById('send').disabled === false || !document.getElementById('problem').hidden"
const STATE = `return {
  problem: document.getElementById('problem').hidden ? null : document.getElementById('problem').textContent,
  rung: document.getElementById('rung').textContent }`
const ASK = `const example = [...document.querySelectorAll('#examples button')].find(button => button.textContent === '${QUESTION}')
  example.click()`
const IS_ANSWERED = "return document.querySelector('.message.assistant:not(.streaming)')?.querySelector(':scope > .text').textContent"

// By the clock: a window that nobody sees may draw no frames, and Puppeteer's own way of waiting counts frames.
const PATIENCE = { polling: 100, timeout: 60_000 }
const timeout = 180_000

const cases = goldenCases('tests/golden/demo').map(({ name, ids, positions, greedy }) => ({ name, ids, positions, greedy, maxTokens: greedy.length }))
const DTYPES = ['exact', 'q8', 'q4']

// Only exact mode promises transformers' tokens.
const asked = dtype => ({ folder: '/models/demo/', options: { dtype }, cases: dtype === 'exact' ? cases : cases.map(one => ({ ...one, maxTokens: 0 })) })

function checkAnswers({ results }, dtype) {
  const name = dtype === 'exact' ? 'demo' : `demo ${dtype}`
  assert.deepEqual(results.map(({ bits }) => bits), cases.map(golden => expectedBits(name, golden.name)))
  if (dtype === 'exact') assert.deepEqual(results.map(({ greedy }) => greedy), cases.map(({ greedy }) => greedy))
}

/** Runs in a page: what a generation rejects with whose worker closes, and how many tokens the next model then gives. */
async function closeInPage() {
  const { loadModel } = await import('/dist/browser.js')
  const load = options => loadModel(new URL('/models/demo/', location.origin), options)
  const answer = model => model.generate([1, 2, 3], { temperature: 0, ignoreEos: true, maxTokens: 400 }).result()
  const dying = await load({ workerUrl: '/workers/that-closes.js' })
  const words = await answer(dying).then(() => 'it worked', ({ code, message }) => `${code}: ${message}`)
  const next = await load({})
  const { length } = (await answer(next)).ids
  await next.dispose()
  return { words, length }
}

function checkDeath({ words, length }) {
  assert.equal(words, 'dead: The worker ended: it stopped without a word. The model must be loaded again.')
  assert.equal(length, 400)
}

const WORKERS = writeWorkerScripts({ 'that-closes': "addEventListener('message', ({ data }) => { if (data.method === 'generate') setTimeout(() => close(), 20) })" })
let site, bareSite

before(async () => {
  const mounts = { '/workers/': WORKERS }
  site = await startSite({ mounts })
  bareSite = await startSite({ mounts, isolation: false })
})
after(async () => {
  await site?.close()
  await bareSite?.close()
})

describe('Firefox', () => {
  let browser, page

  before(async () => {
    browser = await launchFirefox()
    page = await browser.newPage()
  }, { timeout })
  after(() => browser?.close())

  it('answers a sum, with relaxed SIMD and threads', { timeout }, async () => {
    await page.goto(site.url)
    await page.waitForFunction(new Function(IS_READY), PATIENCE)
    const { problem, rung } = await page.evaluate(new Function(STATE))
    assert.equal(problem, null)
    assert.match(rung, /^Runs on relaxed SIMD, \d+ threads$/)
    await page.evaluate(new Function(ASK))
    const answer = await page.waitForFunction(new Function(IS_ANSWERED), PATIENCE)
    assert.equal(await answer.jsonValue(), ANSWER)
  })

  for (const dtype of DTYPES) {
    it(`computes the bits of the native build: ${dtype}`, { timeout }, async () => {
      await page.goto(`${site.url}blank/`)
      const computed = await page.evaluate(computeInPage, asked(dtype))
      assert.equal(computed.variant, 'relaxed')
      assert.ok(computed.threads >= 2)
      checkAnswers(computed, dtype)
    })
  }

  it('computes the same without threads on a page that is not isolated, and says why', { timeout }, async () => {
    await page.goto(`${bareSite.url}blank/`)
    for (const dtype of DTYPES) {
      const computed = await page.evaluate(computeInPage, asked(dtype))
      assert.deepEqual([computed.variant, computed.threads], ['relaxed-single', 1])
      assert.match(computed.why, /^no threads: the page is not cross-origin isolated/)
      checkAnswers(computed, dtype)
    }
  })

  it('notices a worker that closes, and loads again', { timeout }, async () => {
    await page.goto(`${site.url}blank/`)
    checkDeath(await page.evaluate(closeInPage))
  })
})

describe('WebKit', () => {
  let page

  before(async () => {
    page = await launchWebKit()
  }, { timeout })
  after(() => page?.close())

  it('answers a sum on plain SIMD, with threads where it allows them, and says why', { timeout }, async () => {
    await page.goto(site.url)
    await page.waitFor(IS_READY)
    const { problem, rung } = await page.evaluate(STATE)
    assert.equal(problem, null)
    assert.match(rung, /^Runs on plain SIMD, \d+ threads? · no relaxed SIMD: \S/)
    await page.evaluate(ASK)
    assert.equal(await page.waitFor(IS_ANSWERED), ANSWER)
  })

  /** Runs an async function in the page that is open, with one argument. */
  async function evaluate(work, argument) {
    await page.evaluate(`window.outcome = undefined
      ;(${work})(arguments[0]).then(value => { window.outcome = { value } }, error => { window.outcome = { problem: String(error) } })`, argument)
    const { value, problem } = await page.waitFor('return window.outcome')
    assert.equal(problem, undefined)
    return value
  }

  for (const dtype of DTYPES) {
    it(`computes the bits of the native build: ${dtype}`, { timeout }, async () => {
      await page.goto(`${site.url}blank/`)
      const computed = await evaluate(computeInPage, asked(dtype))
      assert.match(computed.variant, /^simd/)
      assert.match(computed.why, /no relaxed SIMD: /)
      checkAnswers(computed, dtype)
    })
  }

  it('computes the same on a page that is not isolated', { timeout }, async () => {
    await page.goto(`${bareSite.url}blank/`)
    const computed = await evaluate(computeInPage, asked('exact'))
    assert.deepEqual([computed.variant, computed.threads], ['simd-single', 1])
    assert.match(computed.why, /no relaxed SIMD: .*no threads: /)
    checkAnswers(computed, 'exact')
  })

  it('notices a worker that closes, and loads again', { timeout }, async () => {
    await page.goto(`${site.url}blank/`)
    checkDeath(await evaluate(closeInPage))
  })
})
