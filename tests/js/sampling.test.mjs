// Sampling options and log-probabilities with the demo model: each against what the model's own logits say.
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { loadModel, QwasmError } from '../../dist/node.js'
import { nodeVariants } from '../support/variants.mjs'
import { demo } from './support/models.mjs'

const greedy = { temperature: 0, ignoreEos: true }
let model
before(async () => (model = await loadModel(demo, { dtype: 'exact' })))
after(() => model.dispose())

/** log-softmax in double. */
function logSoftmax(logits) {
  const largest = logits.reduce((a, b) => Math.max(a, b))
  const sum = logits.reduce((total, logit) => total + Math.exp(logit - largest), 0)
  return Array.from(logits, (logit) => logit - largest - Math.log(sum))
}

/** Greedy ids whose logits go through `change(logits, ids)`, one call of logits() a token. */
async function slowGreedy(prompt, count, change) {
  const ids = []
  while (ids.length < count) {
    const logits = Array.from(await model.logits([...prompt, ...ids], { positions: 'last' }))
    change(logits, ids)
    ids.push(logits.reduce((best, logit, id) => (logit > logits[best] ? id : best), 0))
  }
  return ids
}

describe('penalties and biases', () => {
  const prompt = [100, 101, 102, 101]
  const run = async (options) => (await model.generate(prompt, { ...greedy, maxTokens: 16, ...options }).result()).ids

  it('of presence and frequency lower what was generated, and not what was in the prompt', async () => {
    const expected = await slowGreedy(prompt, 16, (logits, ids) => {
      for (const id of new Set(ids)) logits[id] -= 1.25
      for (const id of ids) logits[id] -= 0.75
    })
    assert.deepEqual(await run({ presencePenalty: 1.25, frequencyPenalty: 0.75 }), expected)
    assert.notDeepEqual(await run({}), expected)
  })

  it('of ids are added to their logits', async () => {
    const [first, second] = await run({})
    const expected = await slowGreedy(prompt, 16, (logits) => {
      logits[first] -= 100
      logits[second] += 3.5
    })
    assert.deepEqual(await run({ logitBias: { [first]: -100, [second]: 3.5 } }), expected)
    assert.deepEqual(await run({ logitBias: { 7: 100 } }), Array(16).fill(7))
  })

  it('do nothing where they are 0 or empty', async () =>
    assert.deepEqual(await run({ presencePenalty: 0, frequencyPenalty: 0, logitBias: {} }), await run({})))

  const wrong = {
    presencePenalty: [2.1, -3, NaN, '1'],
    frequencyPenalty: [2.1, -Infinity, null],
    logitBias: [{ 1: 101 }, { 1: NaN }, { '-1': 1 }, { '01': 1 }, { a: 1 }, { 1.5: 1 }, { 4294967296: 1 }, [], 'x', null],
    logprobs: [-1, 21, 1.5, true, '5', NaN],
  }
  for (const [name, values] of Object.entries(wrong)) {
    it(`with a wrong ${name} are refused by name`, async () => {
      for (const value of values) {
        const expected = { code: 'invalid_argument', message: new RegExp(`option ${name} must be`) }
        await assert.rejects(model.generate('a', { [name]: value }).result(), expected, JSON.stringify(value))
      }
    })
  }

  it('of an id outside the vocabulary are refused with both numbers', async () => {
    const { vocabSize } = model.info
    await assert.rejects(model.generate('a', { logitBias: { [vocabSize]: 1 } }).result(), (error) => {
      assert.equal(error.code, 'invalid_argument')
      return error.message.includes(`${vocabSize - 1}`) && error.message.includes(`${vocabSize}`)
    })
  })
})

describe('n answers', () => {
  const options = { temperature: 1, seed: 7, maxTokens: 12 }

  it('are those of n calls with seeds that follow each other, in a batch', async () => {
    const stream = model.generate('Once upon', { ...options, n: 3 })
    let text = ''
    for await (const piece of stream) text += piece
    const { samples, ...first } = await stream.result()
    assert.equal(samples.length, 3)
    assert.deepEqual(samples[0], first)
    assert.equal(text, first.text)
    for (const [i, sample] of samples.entries()) {
      const alone = await model.generate('Once upon', { ...options, seed: 7 + i }).result()
      assert.deepEqual([sample.seed, sample.ids], [7 + i, alone.ids])
    }
    assert.notDeepEqual(samples[1].ids, first.ids)
  })

  it('in a chat are whole answers, whose seeds are chosen where none is given', async () => {
    const { samples } = await model.chat([{ role: 'user', content: 'What is 2 + 3?' }], { n: 2, temperature: 0.7 }).result()
    assert.equal(samples[1].seed, samples[0].seed + 1)
    for (const { content, finishReason } of samples) assert.ok(content.length > 0 && finishReason === 'stop')
  })

  it('end together when they are stopped, aborted or refused', async () => {
    const stopped = model.generate('Once', { ...options, maxTokens: 500, ignoreEos: true, n: 4 })
    for await (const _ of stopped) break
    const { samples } = await stopped.result()
    assert.deepEqual(samples.map(({ finishReason }) => finishReason), Array(4).fill('abort'))
    const signal = AbortSignal.timeout(20)
    await assert.rejects(model.generate('Once', { ...options, maxTokens: 500, ignoreEos: true, n: 4, signal }).result(), { name: 'AbortError' })
    for (const n of [0, 129, 1.5, '2']) await assert.rejects(model.generate('Once', { n }).result(), { code: 'invalid_argument', message: /\bn\b/ })
  })
})

describe('log-probabilities', () => {
  it("are the log-softmax of the model's own logits, whatever is sampled", async () => {
    const sampled = { temperature: 1.7, topK: 30, topP: 0.9, repetitionPenalty: 1.3, presencePenalty: 1, logitBias: { 50: 5 }, seed: 3 }
    for (const options of [{ temperature: 0 }, sampled]) {
      const { ids, promptIds, logprobs } = await model.generate('Once upon', { maxTokens: 12, ...options, logprobs: 20 }).result()
      assert.deepEqual(logprobs.map(({ id }) => id), ids)
      const { vocabSize } = model.info
      const logits = await model.logits([...promptIds, ...ids.slice(0, -1)])
      for (const [i, { id, logprob, top }] of logprobs.entries()) {
        const start = (promptIds.length - 1 + i) * vocabSize
        const expected = logSoftmax(logits.subarray(start, start + vocabSize))
        for (const token of [{ id, logprob }, ...top]) assert.ok(Math.abs(token.logprob - expected[token.id]) < 1e-5)
        const order = Array.from(expected.keys()).sort((a, b) => expected[b] - expected[a] || a - b)
        assert.deepEqual(top.map((token) => token.id), order.slice(0, 20))
      }
    }
  })

  it('come with as many alternatives as were asked for, and only where they were', async () => {
    const run = (options) => model.generate('Once', { ...greedy, maxTokens: 3, ...options }).result()
    assert.ok(!('logprobs' in (await run({}))))
    for (const count of [0, 1, 5]) {
      const { ids, logprobs } = await run({ logprobs: count })
      assert.deepEqual(logprobs.map(({ top }) => top.length), [count, count, count])
      if (count > 0) assert.deepEqual(logprobs.map(({ top }) => top[0].id), ids)
    }
  })

  it('have an entry for the end token too', async () => {
    const { ids, logprobs } = await model.chat([{ role: 'user', content: 'What is 47 + 85?' }], { temperature: 0, logprobs: 2 }).result()
    assert.deepEqual(logprobs.map(({ id }) => id), ids)
    assert.ok(model.info.eosTokenIds.includes(logprobs.at(-1).id))
    assert.equal(logprobs.at(-1).token, '<|im_end|>')
  })

  it("tell a token's own bytes, which add up to the text where characters are cut", async () => {
    const cut = await model.tokenize('🫠')
    const parts = []
    for (const id of cut) {
      const { logprobs } = await model.generate('Once', { ...greedy, maxTokens: 1, logitBias: { [id]: 100 }, logprobs: 0 }).result()
      assert.deepEqual(logprobs.map((entry) => [entry.id, entry.token]), [[id, '\ufffd']])
      parts.push(...logprobs[0].bytes)
    }
    assert.deepEqual(parts, Array.from(new TextEncoder().encode('🫠')))
    const { ids, logprobs } = await model.generate('你好', { ...greedy, maxTokens: 40, logitBias: { [cut[0]]: 8 }, logprobs: 3 }).result()
    const bytes = Uint8Array.from(logprobs.flatMap((entry) => entry.bytes))
    assert.equal(new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes), await model.detokenize(ids))
  })

  it('are the same, bit for bit, in every module and for any number of threads', async () => {
    const answers = []
    for (const variant of nodeVariants) {
      for (const threads of variant.endsWith('single') ? [1] : [1, 3]) {
        const other = await loadModel(demo, { variant, threads, dtype: 'q4' })
        const { logprobs } = await other.generate('The capital of', { temperature: 1, seed: 5, maxTokens: 20, logprobs: 20 }).result()
        await other.dispose()
        answers.push(logprobs)
      }
    }
    for (const answer of answers.slice(1)) assert.deepEqual(answer, answers[0])
  })
})

describe('random options', () => {
  /** Random numbers from 0 to 1: Mulberry32. */
  function random(seed) {
    return () => {
      seed = (seed + 0x6d2b79f5) | 0
      let t = Math.imul(seed ^ (seed >>> 15), 1 | seed)
      t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
      return ((t ^ (t >>> 14)) >>> 0) / 4294967296
    }
  }
  const CHOICES = {
    temperature: [0, 1e-300, 0.5, 1, 1.5, 1000, 1e300, -1, NaN],
    topK: [0, 1, 40, 5000, 2 ** 40, -1, 1.5],
    topP: [0, 1e-9, 0.5, 0.95, 1, 1.01, -0],
    minP: [0, 0.05, 1, 2],
    repetitionPenalty: [1, 1.2, 1e-6, 1e6, 1e-300, 0],
    presencePenalty: [0, 2, -2, 0.5, 3],
    frequencyPenalty: [0, 2, -2, 0.1, '1'],
    logitBias: [{}, { 5: 100 }, { 5: -100, 2018: 100 }, { 2047: 1 }, { 2048: 1 }, { 1: 200 }, { x: 1 }, []],
    logprobs: [0, 1, 20, 21],
    seed: [0, 1, 2 ** 53 - 1, 2 ** 53],
    stop: ['a', ['e', ' '], '\ud800', '', []],
    ignoreEos: [true, false, 1],
    nonsense: [1],
  }
  const JUNK = [null, undefined, NaN, Infinity, -0, '', 'text', [], {}, () => {}, Symbol.iterator, 10n, new Date(0)]

  it('give a result or an error with a code, and the model works afterwards', { timeout: 120_000 }, async () => {
    const next = random(1)
    const pick = (values) => values[Math.floor(next() * values.length)]
    const options = () => {
      const chosen = { maxTokens: 2 }
      for (const [name, values] of Object.entries(CHOICES)) {
        // Most values fit, or hardly any call would get past the checks.
        const dice = next()
        if (dice < 0.01) chosen[name] = pick(JUNK)
        else if (dice < 0.05 && name !== 'nonsense') chosen[name] = pick(values)
        else if (dice < 0.4 && name !== 'nonsense') chosen[name] = values[Math.floor(next() * Math.min(3, values.length))]
      }
      return chosen
    }
    const alone = await model.generate('Once', { ...greedy, maxTokens: 5 }).result()
    const outcomes = { results: 0, errors: 0 }
    for (let round = 0; round < 100; round++) {
      await Promise.all(
        Array.from({ length: 20 }, async () => {
          const given = options()
          try {
            const { ids, logprobs } = await model.generate('Once upon a', given).result()
            assert.ok(ids.length >= 1 && ids.length <= 2)
            assert.equal(logprobs?.length, given.logprobs === undefined ? undefined : ids.length)
            outcomes.results++
          } catch (error) {
            if (!(error instanceof QwasmError)) throw error
            assert.equal(error.code, 'invalid_argument', error.message)
            outcomes.errors++
          }
        })
      )
    }
    assert.ok(outcomes.results > 500 && outcomes.errors > 500, JSON.stringify(outcomes))
    assert.deepEqual((await model.generate('Once', { ...greedy, maxTokens: 5 }).result()).ids, alone.ids)
  })
})
