// Firefox and WebKit: the demo page loads, answers rightly and says which rung it runs on; and every kind of weights has the native build's bits.
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { launchFirefox, launchWebKit } from '../support/browsers.mjs'
import { expectedBits, goldenCases } from '../support/golden.mjs'
import { computeInPage } from '../support/page-bits.mjs'
import { startSite } from '../support/site.mjs'

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

const cases = goldenCases('tests/golden/demo').map(({ name, ids, positions }) => ({ name, ids, positions, maxTokens: 0 }))
const asked = dtype => ({ folder: '/models/demo/', options: { dtype }, cases })

function checkBits({ results }, dtype) {
  const name = dtype === 'exact' ? 'demo' : `demo ${dtype}`
  assert.deepEqual(results.map(({ bits }) => bits), cases.map(golden => expectedBits(name, golden.name)))
}

let site

before(async () => {
  site = await startSite()
})
after(() => site?.close())

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

  for (const dtype of ['exact', 'q8', 'q4']) {
    it(`computes the bits of the native build: ${dtype}`, { timeout }, async () => {
      await page.goto(`${site.url}blank/`)
      const computed = await page.evaluate(computeInPage, asked(dtype))
      assert.equal(computed.variant, 'relaxed')
      checkBits(computed, dtype)
    })
  }
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

  for (const dtype of ['exact', 'q8', 'q4']) {
    it(`computes the bits of the native build: ${dtype}`, { timeout }, async () => {
      await page.goto(`${site.url}blank/`)
      await page.evaluate(`(${computeInPage})(arguments[0])
        .then(computed => { window.outcome = { computed } }, error => { window.outcome = { problem: String(error) } })`, asked(dtype))
      const { computed, problem } = await page.waitFor('return window.outcome')
      assert.equal(problem, undefined)
      assert.match(computed.variant, /^simd/)
      checkBits(computed, dtype)
    })
  }
})
