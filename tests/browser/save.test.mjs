// Saving the demo page's model as a GGUF file, in Chromium: onto the disk, by way of memory, and not.
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, it } from 'node:test'
import { useChromium } from '../support/chromium.mjs'
import { readGguf } from '../support/gguf.mjs'
import { root } from '../support/golden.mjs'
import { watchedPage } from '../support/site.mjs'

const golden = JSON.parse(readFileSync(join(root, 'tests/golden/demo-gguf.json'), 'utf8'))
const sha256 = data => createHash('sha256').update(data).digest('hex')

const chromium = useChromium()
let page
beforeEach(async () => {
  page = await watchedPage(chromium.browser)
})
afterEach(() => page.close())

async function openAbout(query) {
  await page.goto(chromium.site.url + query)
  await page.waitForSelector('#send:enabled')
  await page.click('#rung')
}

const state = () => page.textContent('#save-state')
const stateLike = pattern => page.waitForFunction(source => new RegExp(source).test(document.getElementById('save-state').textContent), pattern.source)

/** The dialog that asks where to save cannot be driven: this one gives a file of the browser's private file system, with the same streams. */
function answerTheDialog() {
  return page.addInitScript(() => {
    window.showSaveFilePicker = async ({ suggestedName }) => {
      const folder = await navigator.storage.getDirectory()
      return folder.getFileHandle(suggestedName, { create: true })
    }
  })
}

/** Name and SHA-256 of what lies in the private file system. */
function filesOnDisk() {
  return page.evaluate(async () => {
    const found = {}
    for await (const [name, handle] of (await navigator.storage.getDirectory()).entries()) {
      if (!name.endsWith('.gguf')) continue
      const digest = await crypto.subtle.digest('SHA-256', await (await handle.getFile()).arrayBuffer())
      found[name] = [...new Uint8Array(digest)].map(byte => byte.toString(16).padStart(2, '0')).join('')
    }
    return found
  })
}

describe('the button that saves the model', () => {
  it('writes it to the disk, the same bytes as under Node.js', async () => {
    await answerTheDialog()
    await openAbout('?model=./models/demo/&dtype=q4')
    await page.click('#save')
    await stateLike(/^Demo-model-q4\.gguf is saved: 1\.9 MB\.$/)
    assert.deepEqual(await filesOnDisk(), { 'Demo-model-q4.gguf': golden.files.q4.sha256 })
    assert.equal(await page.textContent('#save'), 'Save as GGUF')
    assert.deepEqual(page.complaints, [])
  })

  it('warns where the file goes by way of memory, and downloads it then', async () => {
    await page.addInitScript(() => delete window.showSaveFilePicker)
    await openAbout('?dtype=q8')
    await page.click('#save')
    assert.match(await state(), /collects the file in memory first: about 3\.\d MB/)
    const [download] = await Promise.all([page.waitForEvent('download'), page.click('#save')])
    assert.match(download.suggestedFilename(), /-q8\.gguf$/)
    const file = readFileSync(await download.path())
    assert.deepEqual(Object.keys(readGguf(new Uint8Array(file)).tensors), Object.keys(golden.files.q8.tensors))
    await stateLike(/is saved/)
    assert.deepEqual(page.complaints, [])
  })

  it('leaves no file where it is cancelled, and keeps one that was to be replaced', async () => {
    await answerTheDialog()
    // Streams that take their time, so that there is something to cancel.
    await page.addInitScript(() => {
      const { createWritable } = FileSystemFileHandle.prototype
      FileSystemFileHandle.prototype.createWritable = async function (...args) {
        const file = await createWritable.apply(this, args)
        const writer = file.getWriter()
        const write = async piece => {
          await new Promise(resolve => setTimeout(resolve, 100))
          await writer.write(piece)
        }
        return new WritableStream({ write, close: () => writer.close(), abort: reason => writer.abort(reason) })
      }
    })
    await openAbout('?model=./models/demo/&dtype=q4')
    const cancel = async () => {
      await page.click('#save')
      await stateLike(/ of 1\.9 MB/)
      await page.click('#save')
      await stateLike(/^Not saved\.$/)
    }
    await cancel()
    assert.deepEqual(await filesOnDisk(), {})
    await page.evaluate(async () => {
      const handle = await (await navigator.storage.getDirectory()).getFileHandle('Demo-model-q4.gguf', { create: true })
      const file = await handle.createWritable()
      const writer = file.getWriter()
      await writer.write(new TextEncoder().encode('mine'))
      await writer.close()
    })
    await cancel()
    assert.deepEqual(await filesOnDisk(), { 'Demo-model-q4.gguf': sha256('mine') })
    assert.deepEqual(page.complaints, [])
  })

  it('says nothing where the person changes their mind', async () => {
    await page.addInitScript(() => {
      window.showSaveFilePicker = () => Promise.reject(new DOMException('The user aborted a request.', 'AbortError'))
    })
    await openAbout('?dtype=q8')
    await page.click('#save')
    assert.equal(await state(), '')
    assert.equal(await page.textContent('#save'), 'Save as GGUF')
  })
})
