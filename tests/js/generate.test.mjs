// Generation with the demo model: streams, options, ends, aborts, and calls at once.
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { loadModel, QwasmError } from '../../dist/node.js'
import { goldenCases } from '../support/golden.mjs'
import { demo } from './support/models.mjs'

const EOS = 2018
const sum = [{ role: 'user', content: 'What is 47 + 85?' }]
const long = { temperature: 0, ignoreEos: true } // to the end of the context
let model
before(async () => (model = await loadModel(demo, { dtype: 'exact' })))
after(() => model.dispose())

async function gather(stream) {
  const pieces = []
  for await (const piece of stream) pieces.push(piece)
  return pieces
}

describe('a stream', () => {
  it('brings pieces that add up to the text, without the end token that the ids have', async () => {
    const [{ ids: prompt, greedy }] = goldenCases('tests/golden/demo')
    const stream = model.generate(prompt, { temperature: 0 })
    const pieces = await gather(stream)
    const result = await stream.result()
    assert.ok(pieces.length > 5)
    assert.equal(pieces.join(''), result.text)
    assert.deepEqual(result.ids, greedy)
    assert.deepEqual(result.promptIds, prompt)
    assert.equal(result.finishReason, 'stop')
    assert.equal(result.ids.at(-1), EOS)
    assert.equal(result.text, await model.detokenize(result.ids, { skipSpecial: true }))
    const { prefillTokens, cachedTokens, decodeTokens, decodeMs, loadMs } = result.timings
    assert.equal(prefillTokens + cachedTokens, prompt.length)
    assert.equal(decodeTokens, result.ids.length)
    assert.ok(decodeMs > 0 && loadMs > 0)
  })

  it('of a text counts control tokens in it', async () => {
    const text = await model.renderChat(sum)
    const { promptIds } = await model.generate(text, { maxTokens: 1 }).result()
    assert.deepEqual(promptIds, await model.encodeChat(sum))
  })

  it('that nobody iterates still ends', async () =>
    assert.ok((await model.generate('One', { maxTokens: 3, seed: 1 }).result()).ids.length > 0))

  it('gives its pieces to whoever comes late', async () => {
    const stream = model.generate('Once upon a time', { ...long, maxTokens: 12 })
    const { text } = await stream.result()
    assert.equal((await gather(stream)).join(''), text)
  })

  it('never shows half a character', async () => {
    const { ids } = await model.generate('你好', { ...long, maxTokens: 40 }).result()
    const stream = model.generate('你好', { temperature: 1.5, seed: 3, maxTokens: 200, ignoreEos: true })
    const pieces = await gather(stream)
    const result = await stream.result()
    assert.equal(ids.length, 40)
    assert.equal(pieces.join(''), result.text)
    assert.equal(result.text, await model.detokenize(result.ids, { skipSpecial: true }))
  })
})

describe('a chat', () => {
  it('answers rightly, reasoning and answer apart', async () => {
    const stream = model.chat(sum, { temperature: 0 })
    const shown = { reasoning: '', content: '' }
    for await (const delta of stream) for (const [side, text] of Object.entries(delta)) shown[side] += text
    const { text, content, reasoning } = await stream.result()
    assert.deepEqual(shown, { content, reasoning })
    assert.match(content, /132/)
    assert.match(reasoning, /7 \+ 5/)
    assert.ok(text.startsWith('<think>\n'))
    for (const part of [content, reasoning]) assert.doesNotMatch(part, /think>|^\n/)
  })

  it('without thinking has no reasoning', async () => {
    const { content, reasoning, promptIds } = await model.chat(sum, { temperature: 0, thinking: false }).result()
    assert.equal(reasoning, '')
    assert.match(content, /132/)
    assert.deepEqual(promptIds, await model.encodeChat(sum, { thinking: false }))
  })

  it('whose next prompt is no extension of the last gives what a cold model gives', async () => {
    const first = await model.chat(sum, { temperature: 0 }).result()
    const turns = [...sum, { role: 'assistant', content: first.text }, { role: 'user', content: 'What is 3 + 4?' }]
    const warm = await model.chat(turns, { temperature: 0 }).result()
    const cold = await loadModel(demo, { dtype: 'exact', threads: 1 })
    const fresh = await cold.chat(turns, { temperature: 0 }).result()
    await cold.dispose()
    assert.ok(warm.timings.cachedTokens > 0)
    assert.equal(fresh.timings.cachedTokens, 0)
    assert.deepEqual(warm.ids, fresh.ids)
  })

  it('with wrong messages is refused', async () => {
    await assert.rejects(model.chat([]).result(), { code: 'invalid_argument', message: /empty/ })
    await assert.rejects(gather(model.chat([{ role: 'user' }])), { code: 'invalid_argument' })
    await assert.rejects(model.chat(sum, { tools: 'all' }).result(), { code: 'invalid_argument', message: /tools/ })
  })
})

describe('options', () => {
  const wrong = {
    maxTokens: [0, -1, 1.5, '3', NaN],
    temperature: [-0.1, NaN, Infinity, '1', null],
    topK: [-1, 0.5, NaN],
    topP: [-0.1, 1.1, NaN],
    minP: [-0.1, 1.1, NaN],
    repetitionPenalty: [0, -1, NaN],
    seed: [-1, 0.5, 2 ** 53, NaN],
    stop: ['', [''], [1], 7],
    ignoreEos: [1],
    signal: [{}],
    maxtokens: [1],
    toString: [1],
  }
  for (const [name, values] of Object.entries(wrong)) {
    it(`refuse a wrong ${name} with a sentence`, async () => {
      for (const value of values) {
        await assert.rejects(model.generate('a', { [name]: value }).result(), (error) => {
          assert.ok(error instanceof QwasmError)
          assert.equal(error.code, 'invalid_argument')
          return error.message.includes(name)
        })
      }
    })
  }

  it('that are undefined are as if they were absent', async () => {
    const given = { ...long, maxTokens: 3 }
    const { ids } = await model.generate('One', given).result()
    assert.deepEqual((await model.generate('One', { ...given, topK: undefined, stop: undefined }).result()).ids, ids)
  })

  it('refuse a prompt that is none', async () => {
    for (const prompt of ['', [], [1.5], [-1], [5000], null, 7, {}]) {
      await assert.rejects(model.generate(prompt).result(), { code: 'invalid_argument' }, JSON.stringify(prompt))
    }
  })

  it('come from generation_config.json where they are not given', async () => {
    assert.equal(model.info.generationConfig.do_sample, true)
    const run = async (options) => (await model.generate('Once', { seed: 5, maxTokens: 30, ...options }).result()).ids
    const { temperature, top_k: topK, top_p: topP } = model.info.generationConfig
    assert.deepEqual(await run({}), await run({ temperature, topK, topP }))
    assert.notDeepEqual(await run({ topK: 0, topP: 1, temperature: 3 }), await run({}))
  })
})

describe('sampling', () => {
  const run = async (options) => (await model.generate('Once upon', { maxTokens: 20, ignoreEos: true, ...options }).result()).ids
  it('repeats itself with the same seed, and tells the seed that it chose', async () => {
    assert.deepEqual(await run({ temperature: 1, seed: 7 }), await run({ temperature: 1, seed: 7 }))
    const { ids, seed } = await model.generate('Once upon', { temperature: 1, maxTokens: 20, ignoreEos: true }).result()
    assert.deepEqual(await run({ temperature: 1, seed }), ids)
  })

  it('at temperature 0, top-k 1 or top-p 0 is greedy, whatever the seed', async () => {
    const greedy = await run({ temperature: 0, seed: 1 })
    for (const options of [{ temperature: 0, seed: 2 }, { topK: 1 }, { topP: 0 }, { minP: 1 }])
      assert.deepEqual(await run(options), greedy)
  })

  it('differs with the seed', async () =>
    assert.notDeepEqual(
      await run({ temperature: 2, topK: 0, topP: 1, seed: 1 }),
      await run({ temperature: 2, topK: 0, topP: 1, seed: 2 })
    ))
})

describe('the end of an answer', () => {
  it('comes at maxTokens', async () => {
    const { ids, finishReason } = await model.generate('Once', { temperature: 0, maxTokens: 3 }).result()
    assert.equal(ids.length, 3)
    assert.equal(finishReason, 'length')
  })

  it('comes at an end token, unless ignored', async () => {
    const prompt = await model.encodeChat(sum, { thinking: false })
    const { ids } = await model.generate(prompt, { temperature: 0 }).result()
    assert.ok(model.info.eosTokenIds.includes(ids.at(-1)))
    const ignored = await model.generate(prompt, { temperature: 0, ignoreEos: true, maxTokens: ids.length + 2 }).result()
    assert.deepEqual(ignored.ids.slice(0, ids.length), ids)
    assert.equal(ignored.ids.length, ids.length + 2)
  })

  it('comes at a stop string across tokens, streamed as unstreamed', async () => {
    const { text } = await model.chat(sum, { temperature: 0 }).result()
    for (const [at, length] of [
      [0, 3],
      [5, 4],
      [12, 9],
      [20, 2],
    ]) {
      const stop = text.slice(at, at + length)
      const stream = model.chat(sum, { temperature: 0, stop: ['never seen', stop] })
      let shown = ''
      for await (const { reasoning = '', content = '' } of stream) shown += reasoning + content
      const result = await stream.result()
      assert.equal(result.text, text.slice(0, text.indexOf(stop)))
      assert.equal(shown, result.reasoning + result.content)
      assert.equal(result.finishReason, 'stop')
    }
  })
})

describe('the context', () => {
  const CONTEXT = 40
  let narrow
  before(async () => (narrow = await loadModel(demo, { dtype: 'exact', contextLength: CONTEXT, threads: 1 })))
  after(() => narrow.dispose())
  const ids = (count) => Array.from({ length: count }, (_, i) => 100 + i)

  it('is filled to its end, and the answer says so', async () => {
    for (const [prompt, expected] of [
      [CONTEXT - 1, 2],
      [CONTEXT, 1],
      [CONTEXT - 10, 11],
    ]) {
      const result = await narrow.generate(ids(prompt), long).result()
      assert.equal(result.ids.length, expected)
      assert.equal(result.finishReason, 'length')
    }
  })

  it('refuses a longer prompt with both numbers, and goes on', async () => {
    await assert.rejects(narrow.generate(ids(CONTEXT + 1)).result(), (error) => {
      assert.equal(error.code, 'context_overflow')
      return error.message.includes('41') && error.message.includes('40')
    })
    await assert.rejects(narrow.logits(ids(CONTEXT + 1)), { code: 'context_overflow' })
    assert.equal((await narrow.generate(ids(3), { maxTokens: 2, ignoreEos: true }).result()).ids.length, 2)
  })

  it('beyond max_position_embeddings is allowed where it is asked for, and noted', async () => {
    const wide = await loadModel(demo, { dtype: 'exact', contextLength: 4096, threads: 1 })
    assert.equal(wide.info.contextLength, 4096)
    assert.match(wide.info.notes.join(), /4096.*2048|2048.*4096/)
    await wide.dispose()
    assert.equal(model.info.contextLength, 2048)
    assert.deepEqual(model.info.notes, [])
  })
})

describe('stopping', () => {
  const aborted = { name: 'AbortError' }
  const three = { ...long, maxTokens: 3 }
  let expected
  before(async () => (expected = await model.generate('One', three).result()))
  const goesOn = async () => assert.deepEqual((await model.generate('One', three).result()).ids, expected.ids)

  it('by stop() ends with what there is', async () => {
    const stream = model.generate('Once', long)
    let shown = ''
    for await (const piece of stream) {
      shown += piece
      if (shown.length > 10) stream.stop()
    }
    const { text, finishReason, ids } = await stream.result()
    assert.equal(finishReason, 'abort')
    assert.equal(text, shown)
    assert.ok(ids.length < 1000)
    stream.stop()
    await goesOn()
  })

  it('by break ends with what there is', async () => {
    const stream = model.generate('Once', long)
    for await (const _piece of stream) break
    assert.equal((await stream.result()).finishReason, 'abort')
    await goesOn()
  })

  it('before the first token gives an empty answer', async () => {
    const running = model.generate('Once', long)
    const waiting = model.generate('Once', long)
    waiting.stop()
    running.stop()
    const { text, ids, finishReason } = await waiting.result()
    assert.deepEqual([text, finishReason], ['', 'abort'])
    assert.deepEqual(ids, [])
    await goesOn()
  })

  it('by a signal between tokens rejects iterator and result', async () => {
    const controller = new AbortController()
    const stream = model.generate('Once', { ...long, signal: controller.signal })
    await assert.rejects(async () => {
      for await (const _piece of stream) controller.abort()
    }, aborted)
    await assert.rejects(stream.result(), aborted)
    controller.abort()
    await goesOn()
  })

  it('by a signal before the start runs nothing', async () => {
    for (const call of [
      (signal) => model.generate('Once', { signal }).result(),
      (signal) => gather(model.chat(sum, { signal })),
      (signal) => model.logits([1], { signal }),
    ]) {
      await assert.rejects(call(AbortSignal.abort()), aborted)
    }
    await goesOn()
  })

  it('by a signal in the prefill is quick', async () => {
    const prompt = Array.from({ length: 2000 }, (_, i) => i % 1000)
    const controller = new AbortController()
    const results = [
      model.generate(prompt, { signal: controller.signal }).result(),
      model.logits(prompt, { positions: 'last', signal: controller.signal }),
    ]
    const rejected = results.map((result) => assert.rejects(result, aborted))
    await sleep(30)
    controller.abort()
    await Promise.all(rejected)
    const start = performance.now()
    await goesOn()
    assert.ok(performance.now() - start < 1000)
  })

  it('by a signal with a reason of its own is an AbortError that carries it', async () => {
    const reason = new Error('enough')
    await assert.rejects(model.generate('a', { signal: AbortSignal.abort(reason) }).result(), (error) => {
      assert.ok(error instanceof DOMException)
      assert.equal(error.name, 'AbortError')
      return error.cause === reason
    })
  })
})

describe('calls at once', () => {
  it('give each what it gives alone', async () => {
    const prompts = ['One', 'Once upon a time', 'The capital of', '你好']
    const run = (prompt) => model.generate(prompt, { ...long, maxTokens: 15 }).result()
    const alone = []
    for (const prompt of prompts) alone.push((await run(prompt)).ids)
    const logits = await model.logits([1, 2, 3])
    const together = await Promise.all([...prompts.map(run), model.logits([1, 2, 3])])
    assert.deepEqual(
      together.slice(0, -1).map(({ ids }) => ids),
      alone
    )
    assert.deepEqual(together.at(-1), logits)
  })

  it('with text alone need not wait', async () => {
    const stream = model.generate('Once', long)
    let ended = false
    stream.result().then(() => (ended = true))
    assert.deepEqual(await model.tokenize('a'), [64])
    assert.equal(ended, false)
    stream.stop()
    await stream.result()
  })

  it('that waits can be aborted without harm to the others', async () => {
    const controller = new AbortController()
    const first = model.generate('Once', { ...long, maxTokens: 30 }).result()
    const second = model.generate('One', { ...long, signal: controller.signal }).result()
    const third = model.generate('Once', { ...long, maxTokens: 30 }).result()
    const rejected = assert.rejects(second, { name: 'AbortError' })
    controller.abort()
    await rejected
    assert.deepEqual((await third).ids, (await first).ids)
  })
})

describe('logits', () => {
  it('come in rows, for all, the last or chosen positions', async () => {
    const { vocabSize } = model.info
    const ids = Array.from({ length: 150 }, (_, i) => 50 + i)
    const all = await model.logits(ids)
    assert.equal(all.length, ids.length * vocabSize)
    const row = (position) => all.slice(position * vocabSize, (position + 1) * vocabSize)
    assert.deepEqual(await model.logits(ids, { positions: 'last' }), row(149))
    const chosen = await model.logits(ids, { positions: [70, 3, 3, 149] })
    assert.deepEqual(chosen, Float32Array.of(...row(70), ...row(3), ...row(3), ...row(149)))
    assert.equal((await model.logits(ids, { positions: [] })).length, 0)
    assert.deepEqual(await model.logits(Uint16Array.from(ids), { positions: [0] }), row(0))
  })

  it('refuse wrong positions and no ids', async () => {
    for (const positions of [[3], [-1], [0.5], 'first', 1])
      await assert.rejects(model.logits([1, 2, 3], { positions }), { code: 'invalid_argument' })
    await assert.rejects(model.logits([]), { code: 'invalid_argument' })
  })
})
