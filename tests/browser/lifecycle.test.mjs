// Loading again and again, running out of memory, and dying, in one Chromium page: nothing leaks, nothing hangs, and the next load works.
import assert from 'node:assert/strict'
import { readFile, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { before, describe, it } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import { temporaryFolder } from '../js/support/models.mjs'
import { useBlankPage } from '../support/chromium.mjs'
import { writeBrokenModules } from '../support/broken-modules.mjs'
import { writeHugeModel } from '../support/huge-model.mjs'
import { writeWorkerScripts } from '../support/worker-scripts.mjs'

const ROUNDS = 50
const WARM_UP = 10
const MODEL_MEGABYTES = 6 // the demo model's; a loaded one takes the renderer some 30

const WORKERS = writeWorkerScripts({
  'that-closes': "addEventListener('message', ({ data }) => { if (data.method === 'generate') setTimeout(() => close(), 50) })",
  'that-fails': "addEventListener('message', ({ data }) => { if (data.method === 'generate') setTimeout(() => { throw new Error('a stray error') }, 50) })",
})
const TRAP = /^dead: .*(one of its threads failed|RuntimeError)/
const BROKEN = ['throws-at-its-start', 'traps-at-its-first-work']
const broken = temporaryFolder()
for (const failure of BROKEN) writeBrokenModules(join(broken, failure), failure)
const huge = temporaryFolder()
writeHugeModel(huge, 5)

const chromium = useBlankPage({ mounts: { '/workers/': WORKERS, '/broken/': broken, '/huge/': huge } })

/** Runs in the page: loads, answers, disposes, `rounds` times; the ids of the last answer. */
async function loadInPage({ rounds, options }) {
  const { loadModel } = await import('/dist/browser.js')
  let ids
  for (let round = 0; round < rounds; round++) {
    const model = await loadModel(new URL('/models/demo/', location.origin), options)
    ids = (await model.generate([1, 2, 3], { temperature: 0, maxTokens: 5, ignoreEos: true }).result()).ids
    await model.dispose()
  }
  return ids
}

/** Runs in the page: loads, and waits until the prepared weights are kept. */
async function prepareInPage() {
  const { caches, loadModel } = await import('/dist/browser.js')
  const model = await loadModel(new URL('/models/demo/', location.origin), { dtype: 'q4' })
  while (!(await caches.list())[0]?.prepared.includes('q4')) await new Promise(resolve => setTimeout(resolve, 20))
  await model.dispose()
}

/** Runs in the page: what the load and two calls at once, of which one waits for the other, reject with, then what a later call rejects with. */
async function dieInPage({ options }) {
  const { loadModel } = await import('/dist/browser.js')
  const words = promise => promise.then(() => 'it worked', ({ code, message }) => `${code}: ${message}`)
  let model
  try {
    model = await loadModel(new URL('/models/demo/', location.origin), { maxParallel: 1, ...options })
  } catch (error) {
    return { load: `${error.code}: ${error.message}` }
  }
  const long = { temperature: 0, ignoreEos: true }
  const waiting = await Promise.all([words(model.generate([1, 2, 3], long).result()), words(model.logits([1, 2, 3]))])
  const later = await words(model.tokenize('a'))
  await model.dispose()
  return { waiting, later }
}

const stillLoads = async () => assert.equal((await chromium.page.evaluate(loadInPage, { rounds: 1, options: {} })).length, 5)

describe('a model that dies', () => {
  const deaths = [
    ['because its worker closes', { workerUrl: '/workers/that-closes.js' }, /^dead: The worker ended: it stopped without a word\. /],
    ['because of a stray error in its worker', { workerUrl: '/workers/that-fails.js' }, /^dead: .*a stray error/],
    // Weights that were prepared before are read without threads, so the first work is that of a call. Which comes first: that the wait for the
    // thread ends, or that its error arrives.
    ['because of a trap in a thread', { wasmUrl: '/broken/traps-at-its-first-work/', dtype: 'q4', threads: 2 }, TRAP],
  ]
  for (const [how, options, expected] of deaths) {
    it(`${how} rejects what waits and what comes later, and can be loaded again`, { timeout: 30_000 }, async () => {
      if (options.dtype === 'q4') await chromium.page.evaluate(prepareInPage)
      const { waiting, later } = await chromium.page.evaluate(dieInPage, { options })
      for (const words of [...waiting, later]) {
        assert.match(words, expected)
        assert.match(words, /must be loaded again/)
      }
      await stillLoads()
    })
  }

  const failedLoads = [
    ['a thread traps', { wasmUrl: '/broken/traps-at-its-first-work/', dtype: 'exact' }, TRAP],
    ['a thread throws', { wasmUrl: '/broken/throws-at-its-start/' }, /^dead: .*(one of its threads failed|this thread failed)\. The model/],
    ['the worker has no script', { workerUrl: '/workers/nowhere.js' }, /^dead: The worker ended: its script could not be loaded/],
  ]
  for (const [how, options, expected] of failedLoads) {
    it(`while it is loaded, because ${how}, rejects the load or the first call, and the next load works`, { timeout: 30_000 }, async () => {
      const { load, waiting } = await chromium.page.evaluate(dieInPage, { options })
      // A model this small may be loaded before a thread has got any work; then the first call finds out.
      assert.match(load ?? waiting[0], expected)
      await stillLoads()
    })
  }
})

describe('a model that is too large', () => {
  it('is refused with the bytes asked and had, and a smaller one loads in the same page', async () => {
    const words = await chromium.page.evaluate(async () => {
      const { loadModel } = await import('/dist/browser.js')
      return loadModel(new URL('/huge/', location.origin), { dtype: 'exact' }).then(() => 'it loaded', ({ code, message }) => `${code}: ${message}`)
    })
    assert.match(words, /^out_of_memory: no memory for weights: 5,\d{3},\d{3},\d{3} bytes were asked; dtype 'q8' or 'q4' takes less \(the module's memory has [\d,]+ bytes and may grow to 4,294,967,296\)$/)
    await stillLoads()
  })
})

describe(`${ROUNDS} times load, generate, dispose in one page`, () => {
  const keepModel = () => chromium.page.evaluate(async () => {
    const { loadModel } = await import('/dist/browser.js')
    window.model = await loadModel(new URL('/models/demo/', location.origin), { threads: 2 })
  })
  let pid

  before(async () => {
    // The page's renderer is the one that runs workers while a model is loaded.
    await keepModel()
    const session = await chromium.browser.newBrowserCDPSession()
    const { processInfo } = await session.send('SystemInfo.getProcessInfo')
    await session.detach()
    for (const { type, id } of processInfo) if (type === 'renderer' && await workerThreads(id) > 0) pid = id
    await chromium.page.evaluate(() => window.model.dispose())
  })

  /** Megabytes of the renderer's own memory, without its garbage. */
  async function megabytes() {
    const session = await chromium.page.context().newCDPSession(chromium.page)
    await session.send('HeapProfiler.collectGarbage')
    await session.detach()
    const status = await readFile(`/proc/${pid}/status`, 'utf8')
    const kilobytes = name => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(status)[1])
    return (kilobytes('RssAnon') + kilobytes('RssShmem')) / 1024
  }

  /** Threads of a renderer that run workers; each pthread is one. */
  async function workerThreads(pid) {
    const names = await Promise.all((await readdir(`/proc/${pid}/task`)).map(id => readFile(`/proc/${pid}/task/${id}/comm`, 'utf8').catch(() => '')))
    return names.filter(name => name.startsWith('DedicatedWorker')).length
  }

  /** Threads that still run workers after `seconds`, or 0 as soon as there are none. */
  async function workersLeft(seconds) {
    for (const end = Date.now() + 1000 * seconds; Date.now() < end && await workerThreads(pid) > 0;) await setTimeout(100)
    return workerThreads(pid)
  }

  /** The least megabytes that are seen until they are below `enough`. Chromium takes 2 s to end workers, and 10 to 20 to give their memory back. */
  async function settledMegabytes(seconds, enough = 0) {
    let least = Infinity
    for (const end = Date.now() + 1000 * seconds; Date.now() < end && least > enough; await setTimeout(500)) least = Math.min(least, await megabytes())
    return least
  }

  it('leaves no worker, and memory stays within one model of where it was', { timeout: 180_000 }, async () => {
    const run = rounds => chromium.page.evaluate(loadInPage, { rounds, options: { threads: 2 } })
    await run(WARM_UP)
    const before = await settledMegabytes(14)
    await run(ROUNDS - WARM_UP)
    const after = await settledMegabytes(60, before + MODEL_MEGABYTES)
    console.log(`${before.toFixed(0)} MB after ${WARM_UP} rounds, ${after.toFixed(0)} after ${ROUNDS}`)
    assert.ok(after < before + MODEL_MEGABYTES, `${before} MB after ${WARM_UP} rounds, ${after} after ${ROUNDS}`)
    assert.equal(await workersLeft(10), 0)
    await keepModel()
    assert.equal(await workerThreads(pid), 2, 'what was counted are the worker and its pthread')
  })
})
