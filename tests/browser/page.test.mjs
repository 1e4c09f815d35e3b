// The demo page in Chromium, from the first byte to the last answer, as a person uses it.
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, it } from 'node:test'
import { useChromium } from '../support/chromium.mjs'
import { root } from '../support/golden.mjs'
import { startSite, watchedPage } from '../support/site.mjs'

const chromium = useChromium()
let page

beforeEach(async () => {
  page = await watchedPage(chromium.browser)
})
afterEach(() => page.close())

const ready = () => page.waitForSelector('#send:enabled')

/** Waits until `count` answers are complete; gives the last one's parts. */
async function answers(count) {
  await page.waitForFunction(n => {
    const all = document.querySelectorAll('.message.assistant')
    return all.length === n && !document.querySelector('.streaming')
  }, count)
  return page.evaluate(() => {
    const last = [...document.querySelectorAll('.message.assistant')].at(-1)
    const thoughts = last.querySelector('.thoughts')
    return {
      text: last.querySelector(':scope > .text').textContent,
      thoughts: thoughts && { open: thoughts.open, summary: thoughts.querySelector('summary').textContent, text: thoughts.querySelector('.text').textContent },
      measures: last.querySelector('.measures').textContent,
    }
  })
}

async function ask(text) {
  await page.fill('#question', text)
  await page.keyboard.press('Enter')
}

describe('the demo page', () => {
  it('loads the embedded model, says which rung it runs on, and complains about nothing', async () => {
    await page.goto(chromium.site.url)
    await ready()
    assert.match(await page.textContent('#rung'), /^Runs on relaxed SIMD, \d+ threads$/)
    assert.match(await page.textContent('#welcome-text'), /3\.1 million parameters/)
    assert.equal(await page.isVisible('#loading'), false)
    assert.deepEqual(page.complaints, [])
  })

  it('shows bytes, speed and a bar while it loads', async () => {
    await page.addInitScript(() => {
      window.seen = []
      addEventListener('DOMContentLoaded', () => {
        const record = () => window.seen.push([document.getElementById('loading-bar').value, document.getElementById('loading-text').textContent])
        new MutationObserver(record).observe(document.getElementById('loading'), { childList: true, subtree: true, characterData: true, attributes: true })
      })
    })
    await page.goto(chromium.site.url)
    await ready()
    const seen = await page.evaluate(() => window.seen)
    assert.ok(seen.some(([, text]) => /^Downloading · \d+(\.\d)? (kB|MB) of 6\.3 MB/.test(text)), JSON.stringify(seen))
    const values = seen.map(([value]) => value)
    assert.deepEqual(values, [...values].sort((a, b) => a - b))
  })

  it('answers a sum rightly, keeps the thinking apart, and says how fast it was', async () => {
    await page.goto(chromium.site.url)
    await ready()
    await page.click('text="What is 347 + 85?"')
    const answer = await answers(1)
    assert.equal(answer.text, '347 + 85 = 432')
    assert.match(answer.thoughts.text, /7 \+ 5 \+ 0 = 12, write 2, carry 1\./)
    assert.match(answer.thoughts.summary, /^Thought for [\d.]+\sm?s$/)
    assert.equal(answer.thoughts.open, false)
    assert.match(answer.measures, /^\d+ tokens · \d+ tokens\/s · \d+ prompt tokens in [\d.]+\sm?s$/)
    assert.deepEqual(page.complaints, [])
  })

  it('answers without thinking where the switch is off, and remembers the conversation', async () => {
    await page.goto(chromium.site.url)
    await ready()
    await page.uncheck('#thinking')
    await ask('What is the capital of Japan?')
    const first = await answers(1)
    assert.equal(first.text, 'The capital of Japan is Tokyo.')
    assert.equal(first.thoughts, null)
    await ask('法国的首都是哪里？')
    assert.equal((await answers(2)).text, '法国的首都是巴黎。')
  })

  it('stops at once, keeps what was written, and answers the next question rightly', async () => {
    await page.goto(chromium.site.url)
    await ready()
    // The demo model tells its story in less time than a busy machine may take to press a button; slower pauses between its steps make it wait.
    await page.workers()[0].evaluate(() => {
      const { postMessage } = MessagePort.prototype
      MessagePort.prototype.postMessage = function (...message) {
        setTimeout(() => postMessage.apply(this, message), 20)
      }
    })
    await page.evaluate(() => {
      // The first piece of the story presses the button: as early as a person never could.
      const observer = new MutationObserver(() => {
        if (!document.querySelector('.message.assistant .text')?.textContent) return
        observer.disconnect()
        document.getElementById('stop').click()
      })
      observer.observe(document.getElementById('conversation'), { childList: true, subtree: true })
    })
    await ask('Tell me a story about a fox named Mia.')
    const stopped = await answers(1)
    assert.match(stopped.measures, /^stopped · /)
    assert.doesNotMatch(stopped.text, /The end\.|happy\.|friends\.|day\.$/)
    await page.click('#new-chat')
    assert.equal(await page.locator('.message').count(), 0)
    await ask('What is 347 + 85?')
    assert.equal((await answers(1)).text, '347 + 85 = 432')
    assert.deepEqual(page.complaints, [])
  })

  it('works by keyboard alone', async () => {
    await page.goto(chromium.site.url)
    await ready()
    const focused = () => page.evaluate(() => document.activeElement.id || document.activeElement.textContent)
    assert.equal(await focused(), 'question')
    await page.keyboard.type('What is 347')
    await page.keyboard.press('Shift+Enter')
    assert.equal(await page.inputValue('#question'), 'What is 347\n')
    await page.keyboard.press('Backspace')
    await page.keyboard.type(' + 85?')
    await page.keyboard.press('Enter')
    assert.equal((await answers(1)).text, '347 + 85 = 432')
    assert.equal(await focused(), 'question')
    for (const expected of ['Thought', 'new-chat', 'thinking']) {
      await page.keyboard.press('Shift+Tab')
      assert.match(await focused(), new RegExp(`^${expected}`))
      const outline = await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle)
      assert.equal(outline, 'solid', `the focus on ${expected} can be seen`)
    }
    await page.keyboard.press('Space')
    assert.equal(await page.isChecked('#thinking'), false)
  })

  it('tells a screen reader what happens', async () => {
    await page.goto(chromium.site.url)
    await ready()
    assert.equal(await page.textContent('#announcer'), 'The model is ready')
    await ask('What is 347 + 85?')
    await answers(1)
    assert.equal(await page.textContent('#announcer'), '347 + 85 = 432')
    assert.equal(await page.getAttribute('#announcer', 'aria-live'), 'polite')
  })

  it('never reads text as markup', async () => {
    await page.goto(chromium.site.url)
    await ready()
    await ask('<img src=x onerror="document.title=1"> <b>Hi</b>')
    await answers(1)
    assert.equal(await page.locator('#conversation img, #conversation b').count(), 0)
    assert.deepEqual(page.complaints, [])
  })

  it('fits a phone: nothing is wider than the screen', async () => {
    await page.setViewportSize({ width: 390, height: 780 })
    await page.goto(chromium.site.url)
    await ready()
    await ask('Tell me a story about a fox named Mia.')
    await answers(1)
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 390)
  })

  it('lets no inline script run', async () => {
    await page.goto(chromium.site.url)
    await page.evaluate(() => {
      const script = document.createElement('script')
      script.textContent = 'window.ran = true'
      document.body.append(script)
    })
    assert.equal(await page.evaluate(() => window.ran), undefined)
    assert.ok(page.complaints.some(text => text.startsWith('policy violated: script-src-elem')), page.complaints.join('\n'))
  })
})

describe('the demo page without its model', () => {
  it('says in words what is missing, and loads once it is there', async () => {
    const bare = await startSite({ mounts: { '/models/': join(root, 'tests/support/blank') } })
    try {
      await page.goto(bare.url)
      await page.waitForSelector('#problem:not([hidden])')
      assert.equal(await page.textContent('#problem-title'), 'A file of the model is missing')
      assert.match(await page.textContent('#problem-detail'), /config\.json/)
      assert.equal(await page.isEnabled('#send'), false)
      bare.mounts['/models/'] = join(root, 'models')
      await page.click('#retry')
      await ready()
      assert.equal(await page.isVisible('#problem'), false)
    } finally {
      await bare.close()
    }
  })
})
