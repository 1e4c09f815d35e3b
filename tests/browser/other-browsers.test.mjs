// The demo page in Firefox and WebKit: it loads, answers rightly, and says which rung it runs on.
import assert from 'node:assert/strict'
import { after, before, it } from 'node:test'
import { launchFirefox, launchWebKit } from '../support/browsers.mjs'
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

let site

before(async () => {
  site = await startSite()
})
after(() => site?.close())

it('answers a sum in Firefox, with threads', { timeout: 180_000 }, async () => {
  const browser = await launchFirefox()
  try {
    const page = await browser.newPage()
    await page.goto(site.url)
    await page.waitForFunction(new Function(IS_READY), PATIENCE)
    const { problem, rung } = await page.evaluate(new Function(STATE))
    assert.equal(problem, null)
    assert.match(rung, /\(simd\)/)
    await page.evaluate(new Function(ASK))
    const answer = await page.waitForFunction(new Function(IS_ANSWERED), PATIENCE)
    assert.equal(await answer.jsonValue(), ANSWER)
  } finally {
    await browser.close()
  }
})

it('answers a sum in WebKit, on whatever rung it allows', { timeout: 180_000 }, async () => {
  const page = await launchWebKit()
  try {
    await page.goto(site.url)
    await page.waitFor(IS_READY)
    const { problem, rung } = await page.evaluate(STATE)
    assert.equal(problem, null)
    assert.match(rung, /\(simd(-single)?\): \S/)
    await page.evaluate(ASK)
    assert.equal(await page.waitFor(IS_ANSWERED), ANSWER)
  } finally {
    await page.close()
  }
})
