// A model of Qwen3-0.6B's size in Chromium: it loads without the tied head's bytes, generates, and takes no more memory than promised.
import assert from 'node:assert/strict'
import { open, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { before, it } from 'node:test'
import { makeSyntheticQwen3 } from '../../scripts/synthetic-qwen3.mjs'
import { parseRange } from '../../scripts/serve.mjs'
import { useBlankPage } from '../support/chromium.mjs'
import { root } from '../support/golden.mjs'

const FOLDER = join(root, 'build/synthetic/qwen3-0.6b')
const ALLOWED_BESIDE_WEIGHTS = 250e6
const CONTEXT = 512
const CHUNK = 2 ** 19 // files are fetched by chunks

const chromium = useBlankPage({ mounts: { '/full-size/': FOLDER } })
let model

before(async () => {
  model = await makeSyntheticQwen3(FOLDER)
})

/** First and last byte of lm_head.weight in model.safetensors. */
async function headRange() {
  const file = await open(join(FOLDER, 'model.safetensors'))
  const length = Buffer.alloc(8)
  await file.read(length, 0, 8, 0)
  const headerLength = Number(length.readBigUInt64LE())
  const header = Buffer.alloc(headerLength)
  await file.read(header, 0, headerLength, 8)
  await file.close()
  const [start, end] = JSON.parse(header)['lm_head.weight'].data_offsets
  return { first: 8 + headerLength + start, last: 8 + headerLength + end - 1 }
}

/** Process ids of all renderers: the page's, and those that Chromium keeps in reserve. */
async function rendererPids() {
  const session = await chromium.browser.newBrowserCDPSession()
  const { processInfo } = await session.send('SystemInfo.getProcessInfo')
  await session.detach()
  return processInfo.filter(({ type }) => type === 'renderer').map(({ id }) => id)
}

/** Bytes of a process's own memory: anonymous and shared, without the browser's mapped program files; 0 once a spare one has ended. */
async function ownMemory(pid) {
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => 'RssAnon: 0 kB\nRssShmem: 0 kB')
  const kilobytes = name => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(status)[1])
  return (kilobytes('RssAnon') + kilobytes('RssShmem')) * 1024
}

/** Watches what is added to the renderers' memory until `stop()`, which gives the peak of the one that grew most: the page's. */
async function watchMemory() {
  const pids = await rendererPids()
  const before = await Promise.all(pids.map(ownMemory))
  let peak = 0
  const look = async () => {
    for (const [index, pid] of pids.entries()) peak = Math.max(peak, await ownMemory(pid) - before[index])
  }
  const timer = setInterval(() => look().catch(() => {}), 50)
  return async () => {
    clearInterval(timer)
    await look()
    return peak
  }
}

async function generateInPage(contextLength) {
  const { loadModel } = await import('/dist/browser.js')
  const progress = []
  // A profile that is not kept has its private file system in memory; what is measured here is loading itself.
  const model = await loadModel(new URL('/full-size/', location.origin), { dtype: 'exact', cache: 'no-store', contextLength, onProgress: ({ loaded, total }) => progress.push([loaded, total]) })
  const { ids } = await model.generate([785, 6722, 315, 9625, 374], { temperature: 0, maxTokens: 16, ignoreEos: true }).result()
  const { weightBytes, kvBytesPerToken, variant, hasTokenizer } = model.info
  const textError = await model.tokenize('a').catch(error => error.code)
  await model.dispose()
  return { ids, weightBytes, kvBytesPerToken, variant, hasTokenizer, textError, progress }
}

it('loads, generates 16 tokens within its memory, and never fetches the tied head', { timeout: 600_000 }, async () => {
  const head = await headRange()
  const ranges = []
  chromium.site.server.on('request', request => {
    if (request.url.endsWith('/model.safetensors')) ranges.push(parseRange(request.headers.range, model.bytes))
  })
  const peakOf = await watchMemory()
  const result = await chromium.page.evaluate(generateInPage, CONTEXT)
  const peak = await peakOf()

  assert.equal(result.ids.length, 16)
  assert.equal(result.variant, 'relaxed')
  assert.equal(result.hasTokenizer, false)
  assert.equal(result.textError, 'no_tokenizer')
  let ofHead = 0
  for (const range of ranges) {
    assert.ok(range && range !== 'unsatisfiable', 'every request for weights asks for a range')
    ofHead += Math.max(0, Math.min(range.last, head.last) + 1 - Math.max(range.first, head.first))
  }
  assert.ok(ofHead < 2 * CHUNK, `${ofHead} bytes of the tied head were asked for, more than share chunks with other tensors`)
  const stored = model.bytes - model.headBytes
  const fetched = ranges.reduce((sum, { first, last }) => sum + last - first + 1, 0)
  assert.ok(fetched <= stored + 2 * CHUNK + 64 * 1024, `${fetched} bytes were fetched for ${stored} bytes of weights`)
  const [loaded, total] = result.progress.at(-1)
  assert.equal(loaded, total)

  const allowed = stored + ALLOWED_BESIDE_WEIGHTS + CONTEXT * result.kvBytesPerToken
  console.log(`Peak: ${(peak / 1e6).toFixed(0)} MB of ${(allowed / 1e6).toFixed(0)} MB`)
  assert.ok(peak <= allowed, `loading added ${(peak / 1e6).toFixed(0)} MB; ${(allowed / 1e6).toFixed(0)} MB are allowed`)
  assert.ok(peak >= stored, 'the measurement saw the weights')
  assert.deepEqual(chromium.page.complaints, [])
})
