// Where a page's models may come from, in Chromium: a hub, addresses, a chosen folder, a folder's handle, a drop.
import assert from 'node:assert/strict'
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, afterEach, before, beforeEach, describe, it } from 'node:test'
import { launchChromium } from '../support/browsers.mjs'
import { expectedBits, goldenCases, root } from '../support/golden.mjs'
import { startHub } from '../support/hub.mjs'
import { startSite, watchedPage } from '../support/site.mjs'

const demo = join(root, 'models/demo')
const { ids, name, positions } = goldenCases('tests/golden/demo')[0]
const TOKEN = 'hf_SeCrEt'
let browser, site, hub, page, folder

before(async () => {
  browser = await launchChromium()
  site = await startSite({ policy: null }) // the page's own policy allows no other server
  hub = await startHub({ 'Owner/demo': { main: demo } }, { token: TOKEN })
  folder = mkdtempSync(join(tmpdir(), 'qwasm-given-'))
  cpSync(demo, join(folder, 'model'), { recursive: true })
  mkdirSync(join(folder, 'model/.cache'))
  writeFileSync(join(folder, 'model/.cache/config.json'), 'not this one')
  mkdirSync(join(folder, 'model/notes'))
  writeFileSync(join(folder, 'model/notes/config.json'), 'nor this one')
  for (let i = 0; i < 250; i++) writeFileSync(join(folder, `model/notes/${i}.txt`), '')
})
after(async () => {
  await browser?.close()
  await site?.close()
  await hub?.close()
  if (folder) rmSync(folder, { recursive: true })
})
beforeEach(async () => {
  page = await watchedPage(browser)
  await page.goto(`${site.url}blank/`)
})
afterEach(() => page.close())

/** Runs in the page: loads what the function gives, and hashes logits; { source, bits } or { code, message }. */
function loadInPage(makeSource, options = {}, argument = null) {
  const work = async ({ makeSource, options, argument, ids, positions }) => {
    const package_ = await import('/dist/browser.js')
    try {
      const source = await new Function('argument', 'qwasm', `return (${makeSource})(argument, qwasm)`)(argument, package_)
      const model = await package_.loadModel(source, { dtype: 'exact', ...options })
      const logits = await model.logits(ids, { positions })
      await model.dispose()
      let bits = 2166136261
      for (const word of new Uint32Array(logits.buffer)) bits = Math.imul(bits ^ word, 16777619)
      return { source: model.info.source, bits: (bits >>> 0).toString(16).padStart(8, '0') }
    } catch (error) {
      return { code: error.code, status: error.status, message: error.message }
    }
  }
  return page.evaluate(work, { makeSource: String(makeSource), options, argument, ids, positions })
}

const right = (source) => ({ source, bits: expectedBits('demo', name) })

describe('a page', () => {
  it('loads a model by its hub’s id, and shows the token to the hub alone', async () => {
    const options = { endpoint: hub.endpoint, token: TOKEN }
    assert.deepEqual(await loadInPage(() => 'Owner/demo', options), right(`${hub.endpoint}/Owner/demo/resolve/main/`))
    assert.ok(hub.requests.every(({ authorization }) => authorization === `Bearer ${TOKEN}`))
    assert.ok(hub.stored.length > 0)
    assert.ok(hub.stored.every(({ authorization }) => authorization === undefined))
  })

  it('takes ./owner/name for an address, and is told so where owner/name is not on the hub', async () => {
    const address = new URL('models/demo/', site.url).href
    assert.deepEqual(await loadInPage(() => '../models/demo'), right(address))
    assert.deepEqual(await loadInPage((address) => `${address}model.safetensors?v=1`, {}, address), right(`${address}model.safetensors`))
    const { code, status, message } = await loadInPage(() => 'models/demo', { endpoint: hub.endpoint })
    assert.deepEqual({ code, status }, { code: 'http', status: 401 })
    assert.match(message, /write '\.\/models\/demo'/)
  })

  it('loads a folder that was chosen', async () => {
    await page.setContent('<input type="file" webkitdirectory>')
    await page.setInputFiles('input', join(folder, 'model'))
    const result = await loadInPage(() => document.querySelector('input').files)
    assert.equal(result.bits, expectedBits('demo', name), JSON.stringify(result))
    assert.match(result.source, /^\d+ given files$/)
  })

  it('loads a folder’s handle', async () => {
    const fromStorage = async () => {
      const folder = await (await navigator.storage.getDirectory()).getDirectoryHandle('a model', { create: true })
      const write = async (folder, name, content) => {
        const file = await (await folder.getFileHandle(name, { create: true })).createWritable()
        await file.write(content)
        await file.close()
      }
      for (const name of ['config.json', 'generation_config.json', 'tokenizer.json', 'model.safetensors']) {
        await write(folder, name, await (await fetch(`/models/demo/${name}`)).blob())
      }
      await write(await folder.getDirectoryHandle('nested', { create: true }), 'config.json', 'not this one')
      return folder
    }
    assert.deepEqual(await loadInPage(fromStorage), right("the folder 'a model'"))
  })

  for (const [what, names, count] of [
    ['a folder that was', ['model'], readdirSync(demo).length + 250],
    ['files that were', ['model/config.json', 'model/model.safetensors'], 2],
  ]) {
    it(`loads ${what} dropped on it`, async () => {
      await page.evaluate(() => {
        const box = document.body.appendChild(document.createElement('div'))
        box.style = 'position: fixed; inset: 0'
        addEventListener('dragover', (event) => event.preventDefault())
        window.dropped = new Promise((resolve) => addEventListener('drop', (event) => {
          event.preventDefault()
          resolve(window.filesFromDrop(event.dataTransfer))
        }))
        return import('/dist/browser.js').then((qwasm) => void (window.filesFromDrop = qwasm.filesFromDrop))
      })
      const session = await page.context().newCDPSession(page)
      const data = { items: [], files: names.map((path) => join(folder, path)), dragOperationsMask: 1 }
      for (const type of ['dragEnter', 'dragOver', 'drop']) await session.send('Input.dispatchDragEvent', { type, x: 50, y: 50, data })
      assert.deepEqual(await loadInPage(() => window.dropped), right(`${count} given files`))
    })
  }
})
