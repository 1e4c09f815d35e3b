// Calls at the same time: each gives what it gives alone, whoever joins and leaves; nobody waits for another's whole prompt; one that fails fails alone.
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { loadModel } from '../../dist/node.js'
import { nodeVariants } from '../support/variants.mjs'
import { demo, small } from './support/models.mjs'

const long = { temperature: 0, ignoreEos: true }
const numbers = (count, step) => Array.from({ length: count }, (_, i) => (i * step + 5) % 380)

/** Calls of many kinds; `[prompt, options]`. */
const calls = Array.from({ length: 12 }, (_, i) => [
  numbers(1 + ((i * 37) % 130), 3 + i),
  { ...(i % 3 === 0 ? { temperature: 0 } : { temperature: 1.2, seed: i, topK: 40, repetitionPenalty: 1.05 }), ignoreEos: true, maxTokens: 1 + ((i * 29) % 40) },
])
const idsOf = async (model, [prompt, options]) => (await model.generate(prompt, options).result()).ids

async function alone(source, options) {
  const model = await loadModel(source, { ...options, maxParallel: 1 })
  const ids = []
  for (const call of calls) ids.push(await idsOf(model, call))
  const logits = await model.logits(numbers(90, 7))
  await model.dispose()
  return { ids, logits }
}

describe('calls at once', () => {
  for (const [source, options] of [
    [demo, { dtype: 'q4' }],
    [demo, { dtype: 'q8', kv: 'q8' }],
    [small, { dtype: 'exact' }],
  ]) {
    it(`in ${options.dtype} give the tokens and the logits that they give alone, in every module`, async () => {
      const expected = await alone(source, options)
      for (const variant of nodeVariants) {
        for (const maxParallel of [2, 4, 16]) {
          const model = await loadModel(source, { ...options, variant, maxParallel })
          const [logits, ...ids] = await Promise.all([model.logits(numbers(90, 7)), ...calls.map((call) => idsOf(model, call))])
          assert.deepEqual(ids, expected.ids, `${variant}, ${maxParallel} at once`)
          assert.deepEqual(logits, expected.logits)
          await model.dispose()
        }
      }
    })
  }
})

describe('a batch', () => {
  let model
  before(async () => (model = await loadModel(demo, { dtype: 'exact' })))
  after(() => model.dispose())
  const goesOn = async () => assert.equal((await idsOf(model, [[1, 2, 3], { ...long, maxTokens: 5 }])).length, 5)

  it('takes in who comes later, and lets go who is done', async () => {
    let ended = false
    const running = model.generate('Once upon a time', { ...long, maxTokens: 400 }).result()
    running.then(() => (ended = true))
    for (const maxTokens of [1, 7, 3]) assert.equal((await idsOf(model, ['One', { ...long, maxTokens }])).length, maxTokens)
    assert.equal(ended, false, 'the long one runs still')
    assert.equal((await running).ids.length, 400)
  })

  it('goes on while a long prompt is run: nobody waits for all of it', async () => {
    const running = model.generate('Once upon a time', { ...long, maxTokens: 1500 })
    let pieces = 0
    const reading = (async () => {
      for await (const _piece of running) pieces++
    })()
    while (pieces === 0) await new Promise(setImmediate)
    const before = pieces
    const { timings } = await model.generate(numbers(1900, 11), { ...long, maxTokens: 1 }).result()
    assert.ok(timings.prefillTokens > 1800)
    assert.ok(pieces - before >= 10, `${pieces - before} pieces came during ${timings.prefillMs} ms`)
    running.stop()
    await reading
  })

  it('runs a short prompt that comes after a long one before that one is through', async () => {
    const order = []
    const mark = (name) => () => order.push(name)
    await Promise.all([
      model.generate(numbers(1900, 13), { ...long, maxTokens: 1 }).result().then(mark('long')),
      model.generate([4, 5, 6], { ...long, maxTokens: 2 }).result().then(mark('short')),
    ])
    assert.deepEqual(order, ['short', 'long'])
  })

  it('loses one by stop() or abort without harm to the others', async () => {
    const expected = await Promise.all(['One', 'Once'].map((prompt) => idsOf(model, [prompt, { ...long, maxTokens: 60 }])))
    const controller = new AbortController()
    const stopped = model.generate('The capital', long)
    const aborted = model.generate('What is', { ...long, signal: controller.signal })
    const others = ['One', 'Once'].map((prompt) => idsOf(model, [prompt, { ...long, maxTokens: 60 }]))
    for await (const _piece of stopped) break
    const rejected = assert.rejects(aborted.result(), { name: 'AbortError' })
    controller.abort()
    await rejected
    assert.equal((await stopped.result()).finishReason, 'abort')
    assert.deepEqual(await Promise.all(others), expected)
  })

  it('whose calls are more than its places takes them in the order of asking', async () => {
    const one = await loadModel(demo, { dtype: 'exact', maxParallel: 1 })
    const order = []
    await Promise.all(
      [30, 1, 5].map(async (maxTokens, i) => {
        await one.generate('Once', { ...long, maxTokens }).result()
        order.push(i)
      })
    )
    assert.deepEqual(order, [0, 1, 2])
    await one.dispose()
  })

  it('goes on where one call fails', async () => {
    const good = idsOf(model, ['Once', { ...long, maxTokens: 40 }])
    const bad = [numbers(3000, 7), [999999], []].map((prompt) => assert.rejects(model.generate(prompt, long).result()))
    await Promise.all(bad)
    assert.equal((await good).length, 40)
    await goesOn()
  })

  it('waits while the speed of memory is measured, and nothing is lost', async () => {
    const [ids, bandwidth] = await Promise.all([idsOf(model, ['Once', { ...long, maxTokens: 40 }]), model.readBandwidth()])
    assert.ok(bandwidth > 1e6)
    assert.deepEqual(await idsOf(model, ['Once', { ...long, maxTokens: 40 }]), ids)
  })

  it('ends with the model: every call is rejected', async () => {
    const other = await loadModel(demo, { dtype: 'exact' })
    const results = Array.from({ length: 7 }, () => assert.rejects(other.generate('Once', long).result(), { code: 'disposed' }))
    await new Promise((resolve) => setTimeout(resolve, 50))
    await other.dispose()
    await Promise.all(results)
  })

  it('has as many places as maxParallel says, which must be a number from 1 to 16', async () => {
    for (const maxParallel of [0, 17, 1.5, '4'])
      await assert.rejects(loadModel(demo, { maxParallel }), { code: 'invalid_argument', message: /maxParallel/ })
  })
})
