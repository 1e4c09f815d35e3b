// The demo page with other models than its own, in Chromium: naming one, watching it load, what is kept, and what can go wrong.
import assert from 'node:assert/strict'
import { cpSync, mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, afterEach, before, beforeEach, describe, it } from 'node:test'
import { launchChromium } from '../support/browsers.mjs'
import { root } from '../support/golden.mjs'
import { startHostileServer } from '../support/hostile-server.mjs'
import { startHub } from '../support/hub.mjs'
import { putBehind, startSite, watchedPage } from '../support/site.mjs'

const demo = join(root, 'models/demo')
const QUESTION = 'What is 347 + 85?'
const ANSWER = '347 + 85 = 432'
const SLOW = 3_000_000 // bytes a second
let browser, site, slow, folder, context, page

before(async () => {
  folder = mkdtempSync(join(tmpdir(), 'qwasm-page-'))
  cpSync(demo, join(folder, 'untalkative'), { recursive: true })
  const settings = join(folder, 'untalkative/tokenizer_config.json')
  writeFileSync(settings, JSON.stringify({ ...JSON.parse(readFileSync(settings, 'utf8')), chat_template: undefined }))
  browser = await launchChromium()
  slow = await startHostileServer(demo)
  site = await startSite({ mounts: { '/other/': demo, '/untalkative/': join(folder, 'untalkative') } })
  putBehind(site, '/slow/', slow.url)
})
after(async () => {
  await browser?.close()
  await site?.close()
  await slow?.close()
  if (folder) rmSync(folder, { recursive: true })
})
beforeEach(async () => {
  slow.bandwidth = SLOW
  context = await browser.newContext() // with storage of its own
  page = await watchedPage(context)
})
afterEach(() => context.close())

async function openPage(query = '') {
  await page.goto(site.url + query)
  await page.waitForSelector('#send:enabled, #problem:not([hidden])')
  assert.equal(await page.textContent('#problem-detail'), '')
}

/** Writes a name or address into the panel and loads it. */
async function load(text) {
  await page.click('#open-models')
  await page.fill('#source', text)
  await page.click('#load')
}

/** A model of 8.6 GB, its file full of holes: a golden one with very many words, of whose weights none is ever read. */
function writeLargeModel(target) {
  cpSync(join(root, 'tests/golden/models/qwen3'), target, { recursive: true })
  const config = JSON.parse(readFileSync(join(target, 'config.json'), 'utf8'))
  const words = 1 << 24
  writeFileSync(join(target, 'config.json'), JSON.stringify({ ...config, vocab_size: words }))
  const path = join(target, 'model.safetensors')
  const stored = readFileSync(path)
  const { __metadata__, ...tensors } = JSON.parse(stored.subarray(8, 8 + Number(stored.readBigUInt64LE())))
  let end = 0
  for (const [name, tensor] of Object.entries(tensors)) {
    if (name === 'model.embed_tokens.weight') Object.assign(tensor, { dtype: 'F32', shape: [words, config.hidden_size] })
    const bytes = tensor.shape.reduce((product, size) => product * size, tensor.dtype === 'F32' ? 4 : 2)
    tensor.data_offsets = [end, end += bytes]
  }
  const header = Buffer.from(JSON.stringify(tensors))
  const length = Buffer.alloc(8)
  length.writeBigUInt64LE(BigInt(header.length))
  writeFileSync(path, Buffer.concat([length, header]))
  truncateSync(path, 8 + header.length + end)
}

const inUse = name => page.waitForFunction(wanted => document.getElementById('model-name').textContent === wanted, name)
const text = selector => page.textContent(selector)

/** Waits for the card that tells of a problem; gives its words. */
async function problem() {
  await page.waitForSelector('#problem:not([hidden])')
  return { title: await text('#problem-title'), advice: await text('#problem-text'), detail: await text('#problem-detail'), button: await text('#retry') }
}

async function ask(question = QUESTION) {
  const count = await page.locator('.message.assistant').count()
  await page.fill('#question', question)
  await page.keyboard.press('Enter')
  await page.waitForFunction(n => document.querySelectorAll('.message.assistant:not(.streaming)').length === n, count + 1)
  return page.locator('.message.assistant > .text').last().textContent()
}

/** The models that the panel lists: [name, what it says of it]. */
async function kept() {
  await page.click('#open-models')
  await page.waitForFunction(() => document.getElementById('kept-usage').textContent !== '')
  return page.$$eval('#kept li', items => items.map(item => [item.querySelector('strong').textContent, item.querySelector('.hint').textContent]))
}

/** Drops a folder on the page as a person does. */
async function drop(path, types = ['dragEnter', 'dragOver', 'drop']) {
  const session = await context.newCDPSession(page)
  const data = { items: [], files: [path], dragOperationsMask: 1 }
  for (const type of types) await session.send('Input.dispatchDragEvent', { type, x: 50, y: 50, data })
}

describe('another model', () => {
  it('is named and loaded by keyboard alone, and goes on with the conversation', async () => {
    await openPage()
    await ask()
    for (let presses = 0; await page.evaluate(() => document.activeElement.id) !== 'open-models'; presses++) {
      assert.ok(presses < 8, 'the button of the panel can be reached')
      await page.keyboard.press('Shift+Tab')
    }
    await page.keyboard.press('Enter')
    assert.equal(await page.evaluate(() => document.activeElement.id), 'source')
    await page.keyboard.type('./other/')
    await page.keyboard.press('Enter')
    await inUse('other')
    assert.equal(await text('.note'), 'From here on: other')
    assert.equal(page.url(), `${site.url}?model=${site.url}other/`)
    await page.keyboard.press('Escape')
    assert.notEqual(await ask('What is the capital of Japan?'), '')
    const engines = () => page.workers().filter(worker => worker.url().endsWith('/worker.browser.js')).length
    for (const end = Date.now() + 10_000; engines() > 1;) {
      assert.ok(Date.now() < end, 'the former model is gone')
      await page.waitForTimeout(50)
    }
    assert.deepEqual(page.complaints, [])
  })

  it('samples as its own generation_config.json says', async () => {
    await page.addInitScript(() => {
      window.asked = []
      const { postMessage } = Worker.prototype
      Worker.prototype.postMessage = function (message, ...rest) {
        if (message?.method === 'chat') window.asked.push(message.args.options)
        return postMessage.call(this, message, ...rest)
      }
    })
    await openPage()
    await ask()
    await load('./other/')
    await inUse('other')
    await ask()
    assert.deepEqual(await page.evaluate(() => window.asked), [{ temperature: 0, thinking: true }, { thinking: true }])
  })

  it('comes from a folder that was chosen', async () => {
    await openPage()
    await page.click('#open-models')
    const [chooser] = await Promise.all([page.waitForEvent('filechooser'), page.click('#choose-folder')])
    await chooser.setFiles(demo)
    await inUse('demo')
    assert.match(await text('#about-rows'), /From\d+ given files/)
    assert.equal(page.url(), site.url)
    assert.deepEqual(page.complaints, [])
  })

  it('comes from a folder that is dropped anywhere, with a hint while it hovers', async () => {
    await openPage()
    await page.click('#open-models') // over the panel too
    const hinted = () => page.evaluate(() => document.getElementById('drop-hint').matches(':popover-open'))
    await drop(join(folder, 'untalkative'), ['dragEnter', 'dragOver'])
    assert.equal(await hinted(), true)
    await drop(join(folder, 'untalkative'), ['dragCancel'])
    await page.waitForFunction(() => !document.getElementById('drop-hint').matches(':popover-open'))
    await drop(join(folder, 'untalkative'))
    assert.equal(await hinted(), false)
    await inUse('untalkative')
    assert.deepEqual(page.complaints, [])
  })

  it('without a chat template goes on from a text, and has no switch for thinking', async () => {
    await openPage()
    assert.equal(await page.isVisible('#thinking'), true)
    await load('./untalkative/')
    await inUse('untalkative')
    assert.match(await text('#welcome-text'), /without a chat template, so it does not answer/)
    assert.equal(await page.isVisible('#thinking'), false)
    assert.equal(await page.getAttribute('#question', 'placeholder'), 'Begin a text')
  })

  it('without a tokenizer is refused, and the former one stays', async () => {
    await openPage()
    await load('./tests/golden/models/qwen3/')
    const { title, advice } = await problem()
    assert.equal(title, 'This model knows no text')
    assert.match(advice, /Demo model stays in use/)
    assert.equal(await ask(), ANSWER)
  })

  it('tells what it runs on, what it takes and where it came from, behind the quiet line', async () => {
    await openPage('?model=./other/&dtype=q4')
    assert.equal(await page.isVisible('#about-rows'), false)
    await page.click('#rung')
    const rows = Object.fromEntries(await page.$$eval('#about-rows div', all => all.map(row => [...row.children].map(part => part.textContent))))
    assert.equal(rows.From, `${site.url}other/`)
    assert.match(rows.Weights, /^3\.1 million parameters, q4, 4\.5 bits a weight: \d\.\d MB in memory$/)
    assert.match(rows.Context, /^2,048 tokens \(f16: up to \d\.\d MB more\)$/)
    assert.match(rows.Engine, /^relaxed, \d threads$/)
    assert.ok(rows['Why this one'].length > 0)
  })
})

describe('a hub', () => {
  const TOKEN = 'hf_SeCrEt'
  let hub

  before(async () => {
    hub = await startHub({ 'Owner/demo': { main: demo } }, { token: TOKEN })
  })
  after(() => hub?.close())

  it('is asked by a model’s name; where it wants a token, that is asked for, used and not stored', async () => {
    // The page's policy lets it talk to https alone, as the real hub does; this brings its requests to the local one.
    await context.route('https://huggingface.co/**', async route => {
      const { pathname } = new URL(route.request().url())
      const { range, authorization } = route.request().headers()
      const answer = await fetch(hub.endpoint + pathname, { method: route.request().method(), headers: { ...(range && { range }), ...(authorization && { authorization }) } })
      await route.fulfill({ status: answer.status, headers: Object.fromEntries(answer.headers), body: Buffer.from(await answer.arrayBuffer()) })
    })
    await openPage()
    await page.click('#open-models')
    assert.equal(await page.isVisible('#token'), false)
    await page.click('#close-models')
    await load('Owner/demo')
    const { title, button, detail } = await problem()
    assert.deepEqual([title, button], ['The hub wants to know who asks', 'Enter a token'], detail)
    await page.click('#retry')
    assert.equal(await page.evaluate(() => document.activeElement.id), 'token')
    assert.equal(await page.inputValue('#source'), 'Owner/demo')
    await page.keyboard.type(TOKEN)
    await page.keyboard.press('Enter')
    await inUse('Owner/demo')
    assert.equal(page.url(), `${site.url}?model=Owner/demo`)
    const stored = await page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie, document.getElementById('token').value]))
    assert.equal(stored, '[{},{},"",""]')
    assert.equal(await page.isVisible('#token'), false)
    assert.deepEqual(page.complaints.filter(line => !/status of 40[134]/.test(line)), [])
  })
})

describe('a load that takes a while', () => {
  it('tells phase, bytes, speed, time left and file, beside a model that answers meanwhile', async () => {
    await page.addInitScript(() => {
      window.seen = []
      addEventListener('DOMContentLoaded', () => {
        const record = () => {
          const bar = document.getElementById('loading-bar')
          window.seen.push({ share: bar.value / bar.max, text: document.getElementById('loading-text').textContent, file: document.getElementById('loading-file').textContent })
        }
        new MutationObserver(record).observe(document.getElementById('loading'), { childList: true, subtree: true, characterData: true, attributes: true })
      })
    })
    await openPage()
    await load('./slow/')
    await page.waitForSelector('#loading:not([hidden])')
    assert.equal(await text('#loading-title'), 'Loading slow')
    assert.equal(await ask(), ANSWER)
    await inUse('slow')
    const seen = await page.evaluate(() => window.seen)
    assert.ok(seen.some(({ text }) => /^Downloading · [\d.]+ MB of 6\.3 MB · [\d.]+ MB\/s · \d s left$/.test(text)), JSON.stringify(seen))
    assert.ok(seen.some(({ file }) => file === 'model.safetensors'))
    assert.ok(seen.every(({ share }) => share <= 1))
  })

  it('pauses, resumes, and after a cancel goes on from where it was', async () => {
    await openPage()
    const arrived = () => page.$eval('#loading-bar', bar => bar.value)
    await load('./slow/')
    await page.waitForFunction(() => document.getElementById('loading-bar').value > 1.5e6)
    await page.click('#pause')
    assert.match(await text('#loading-text'), /^Paused · [\d.]+ MB of 6\.3 MB$/)
    assert.equal(await text('#pause'), 'Resume')
    await page.waitForTimeout(200) // what was on its way has come
    const paused = await arrived()
    await page.waitForTimeout(400)
    assert.equal(await arrived(), paused)
    await page.click('#pause')
    await page.waitForFunction(bytes => document.getElementById('loading-bar').value > bytes, paused)
    await page.waitForFunction(() => document.getElementById('loading-bar').value > 3.5e6)
    await page.click('#cancel')
    const { title, advice, button } = await problem()
    assert.equal(title, 'Loading slow was cancelled')
    assert.match(advice, /goes on from here next time/)
    assert.equal(await page.isVisible('#loading'), false)
    assert.equal(button, 'Go on loading')
    assert.equal(await ask(), ANSWER)
    const sent = slow.sentOf.get('model.safetensors')
    assert.match((await kept())[0].join(), /^slow,.*not finished/)
    await page.click('#kept li:first-child button')
    await inUse('slow')
    const more = slow.sentOf.get('model.safetensors') - sent
    assert.ok(more < 5.3e6, `of 6.3 MB, 3.5 had come; then ${more} bytes were sent: the rest, and once more the chunks that were under way`)
    assert.deepEqual(page.complaints, [])
  })

  it('gives way to another that is chosen meanwhile', async () => {
    slow.bandwidth = 300_000
    await page.goto(`${site.url}?model=./slow/`)
    await page.waitForSelector('#loading:not([hidden])')
    await load('./other/')
    await inUse('other')
    assert.equal(await page.isVisible('#problem'), false)
    assert.equal(await page.isVisible('#loading'), false)
  })

  it('waits for another tab that loads the same model, and says so', async () => {
    slow.bandwidth = 1_500_000
    await page.goto(`${site.url}?model=./slow/`)
    await page.waitForFunction(() => document.getElementById('loading-bar').value > 1e6)
    const second = await watchedPage(context)
    await second.goto(`${site.url}?model=./slow/`)
    await second.waitForFunction(() => document.getElementById('loading-text').textContent.startsWith('Another tab is loading this model'))
    for (const tab of [page, second]) await tab.waitForSelector('#send:enabled')
    assert.deepEqual([...page.complaints, ...second.complaints], [])
  })
})

describe('models that are kept', () => {
  it('are listed, loaded again without a download, and removed by pressing twice', async () => {
    slow.bandwidth = Infinity
    await openPage('?model=./slow/&dtype=q4')
    await load('./models/demo/')
    await inUse('Demo model')
    const list = await kept()
    assert.deepEqual(list.map(([name]) => name), ['Demo model', 'slow'])
    assert.match(list[0][1], /^in use · [\d.]+ MB · used just now$/)
    assert.match(list[1][1], /^[\d.]+ MB · q4 ready · used just now$/)
    assert.match(await text('#kept-usage'), /^[\d.]+ MB in 2 models · [\d.]+ GB free$/)
    const sent = slow.sentOf.get('model.safetensors')
    await page.click('[aria-label="Load slow"]')
    await inUse('slow')
    assert.ok(slow.sentOf.get('model.safetensors') - sent < 100, 'only its state was asked for')
    await load('./models/demo/')
    await inUse('Demo model')
    await kept()
    const remove = page.locator('[aria-label="Remove slow"]')
    await remove.click()
    assert.match(await remove.textContent(), /^Free [\d.]+ MB\?$/)
    await remove.click()
    await page.waitForFunction(() => document.querySelectorAll('#kept li').length === 1)
    assert.equal(await text('#kept strong'), 'Demo model')
  })
})

describe('a link to a model', () => {
  it('of this site starts at once; one of elsewhere fills the panel and waits for a click', async () => {
    const asked = []
    await context.route('https://huggingface.co/**', route => {
      asked.push(route.request().url())
      return route.abort()
    })
    await openPage('?model=./other/')
    assert.equal(await text('#model-name'), 'other')
    await openPage('?model=Qwen/Qwen3-0.6B&dtype=q4')
    assert.equal(await page.isVisible('#models'), true)
    assert.equal(await page.inputValue('#source'), 'Qwen/Qwen3-0.6B')
    assert.equal(await page.inputValue('#dtype'), 'q4')
    assert.deepEqual(asked, [])
    await page.click('#load')
    assert.equal((await problem()).title, 'The connection was lost')
    assert.ok(asked.length > 0)
  })

  it('is text and nothing else', async () => {
    await openPage('?model=<img src=x onerror="document.title=1">')
    await page.click('#load')
    assert.match(await text('#source-problem'), /neither a name such as Qwen\/Qwen3-0\.6B nor an address/)
    assert.equal(await page.locator('img').count(), 0)
    assert.deepEqual(page.complaints, [])
  })
})

describe('what goes wrong', () => {
  it('is said in words that help', async () => {
    await openPage()
    for (const [given, expected] of [
      ['', /^Write the name/], ['qwen3', /^This is neither/], ['http://example.org/model/', /https:\/\/ only\.$/],
    ]) {
      await load(given)
      assert.match(await text('#source-problem'), expected)
      await page.keyboard.press('Escape')
    }
    await load('./nothing/')
    assert.deepEqual((({ title, button }) => [title, button])(await problem()), ['There is no model at this address', 'Load again'])
    await drop(join(root, 'tests/support'))
    await page.waitForFunction(() => document.getElementById('problem-title').textContent === 'A file of the model is missing')
    assert.equal(await ask(), ANSWER)
  })

  it('for want of memory offers to put the former model away, which can be loaded again', async () => {
    const large = join(folder, 'large')
    writeLargeModel(large)
    site.mounts['/large/'] = large
    await openPage()
    await page.click('#open-models')
    await page.selectOption('#dtype', 'exact')
    await page.click('#close-models')
    await load('./large/')
    const first = await problem()
    assert.deepEqual([first.title, first.button], ['There is not enough memory', 'Put Demo model away, then load'], first.detail)
    assert.equal(await page.isEnabled('#send'), true)
    await page.click('#retry')
    await page.waitForFunction(() => document.getElementById('retry').textContent === 'Load again')
    assert.equal(await page.isEnabled('#send'), false)
    await load('./models/demo/')
    await page.waitForSelector('#send:enabled')
    assert.equal(await ask('What is 508 - 199?'), '508 - 199 = 309')
  })

  it('fits a phone, with the panel open', async () => {
    await page.setViewportSize({ width: 390, height: 780 })
    await openPage('?model=./other/')
    await kept()
    const widest = () => page.evaluate(() => Math.max(document.documentElement.scrollWidth, document.getElementById('models').scrollWidth))
    assert.equal(await widest(), 390)
    const outside = await page.$$eval('#models *', nodes => nodes.filter(node => node.getBoundingClientRect().right > 390).map(node => node.id || node.tagName))
    assert.deepEqual(outside, [])
  })
})
