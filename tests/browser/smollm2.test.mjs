// A real pretrained model out of a GGUF file in Chromium: SmolLM2-135M-Instruct against transformers reading the same file, and on the demo page.
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { readJson } from '../js/support/models.mjs'
import { launchChromium } from '../support/browsers.mjs'
import { startSite, watchedPage } from '../support/site.mjs'

const { stride, cases } = readJson('tests/golden/smollm2.json')
let browser, site, page

before(async () => {
  browser = await launchChromium()
  site = await startSite()
  page = await watchedPage(browser)
})
after(async () => {
  await browser?.close()
  await site?.close()
})

/** Runs in the page: for each case the likeliest ids after all of its tokens, and some logits of the first of them. */
async function computeInPage({ cases, stride }) {
  const { loadModel } = await import('/dist/browser.js')
  const model = await loadModel('/models/smollm2/SmolLM2-135M-Instruct.Q4_1.gguf', { dtype: 'exact', contextLength: 256 })
  const { vocabSize } = model.info
  const answers = []
  for (const { ids, greedy, largest } of cases) {
    const positions = greedy.map((_, i) => ids.length - 1 + i)
    const logits = await model.logits([...ids, ...greedy.slice(0, -1)], { positions })
    const rows = positions.map((_, i) => logits.subarray(i * vocabSize, (i + 1) * vocabSize))
    answers.push({
      greedy: rows.map(row => row.reduce((best, logit, id) => (logit > row[best] ? id : best), 0)),
      every: Array.from(rows[0].filter((_, id) => id % stride === 0)),
      largest: largest.map(([id]) => rows[0][id]),
    })
  }
  await model.dispose()
  return answers
}

describe('SmolLM2-135M-Instruct in Chromium', () => {
  it('has transformers’ logits within 1e-3 and its greedy tokens, in exact mode', { timeout: 300_000 }, async () => {
    await page.goto(`${site.url}blank/`)
    const answers = await page.evaluate(computeInPage, { cases, stride })
    for (const [i, { greedy, every, largest }] of answers.entries()) {
      assert.deepEqual(greedy, cases[i].greedy, cases[i].question)
      const expected = [...cases[i].every, ...cases[i].largest.map(([, logit]) => logit)]
      const off = Math.max(...[...every, ...largest].map((logit, at) => Math.abs(logit - expected[at])))
      assert.ok(off < 1e-3, `${cases[i].question}: off by ${off}`)
    }
  })

  it('is offered on the demo page, and chats there', { timeout: 120_000 }, async () => {
    await page.goto(site.url)
    await page.waitForFunction(() => !document.getElementById('send').disabled)
    await page.click('#open-models')
    await page.click('#load-small')
    await page.waitForFunction(() => document.getElementById('model-name').textContent === 'SmolLM2-135M-Instruct')
    await page.fill('#question', 'Explain why the sky is blue in one sentence.')
    await page.click('#send')
    await page.waitForFunction(() => document.querySelector('.message.assistant:not(.streaming) > .text')?.textContent.length > 20)
  })
})
