// Embeddings: those of transformers, the same bits in every module and in any company; what is refused; and that they share the engine with other calls.
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { loadModel } from '../../dist/node.js'
import { hashBits } from '../support/golden.mjs'
import { nodeVariants } from '../support/variants.mjs'
import { cosine, embeddingModel, golden, goldenEmbedding } from './support/embedding-model.mjs'
import { small } from './support/models.mjs'

const folder = embeddingModel()
const texts = golden.texts.map(({ text }) => text)
const rungs = nodeVariants.map((variant) => ({ variant, ...(!variant.endsWith('-single') && { threads: 2 }) }))
const bitsOf = ({ embeddings }) => embeddings.map(hashBits)
const numbers = (count, step) => Array.from({ length: count }, (_, i) => (i * step + 5) % 380)

describe('embeddings', () => {
  let expected, expectedOfIds
  for (const rung of rungs) {
    it(`are those of transformers in ${rung.variant}`, async () => {
      const model = await loadModel(folder, { dtype: 'exact', ...rung })
      for (const [i, test] of golden.texts.entries()) {
        const { text, instruction, ids } = test
        const { embeddings, tokens } = await model.embed([text], { instruction })
        const near = cosine(embeddings[0], goldenEmbedding(test))
        assert.ok(near >= 0.99999, `text ${i}: ${near}`)
        assert.equal(tokens, ids.length)
      }
      const made = await model.embed(texts)
      expected ??= bitsOf(made)
      assert.deepEqual(bitsOf(made), expected)
      await model.dispose()
    })

    it(`of token ids, with no tokenizer at all, too`, async () => {
      const model = await loadModel(small, { dtype: 'exact', ...rung })
      const made = await model.embed(golden.ids.map(({ ids }) => ids))
      for (const [i, test] of golden.ids.entries()) assert.ok(cosine(made.embeddings[i], goldenEmbedding(test)) >= 0.99999, `ids ${i}`)
      expectedOfIds ??= bitsOf(made)
      assert.deepEqual(bitsOf(made), expectedOfIds)
      await model.dispose()
    })
  }

  for (const options of [{ dtype: 'q8' }, { dtype: 'q4', kv: 'q8' }]) {
    it(`in ${options.dtype} have the same bits in every module, and are near the exact ones`, async () => {
      const bits = []
      for (const rung of rungs) {
        const model = await loadModel(folder, { ...options, ...rung })
        const made = await model.embed(texts)
        bits.push(bitsOf(made))
        made.embeddings.forEach((embedding, i) => {
          if (golden.texts[i].instruction === undefined) assert.ok(cosine(embedding, goldenEmbedding(golden.texts[i])) > 0.9, `text ${i}`)
        })
        await model.dispose()
      }
      for (const own of bits) assert.deepEqual(own, bits[0])
    })
  }
})

describe('model.embed', () => {
  let model
  before(async () => (model = await loadModel(folder, { dtype: 'exact' })))
  after(() => model.dispose())
  const goesOn = async () => assert.equal((await model.embed(['x'])).embeddings.length, 1)

  it('gives each text what it gives it alone, whatever was before it', async () => {
    const together = bitsOf(await model.embed([...texts, ...texts.toReversed(), texts[0]]))
    const alone = []
    for (const text of texts) alone.push(...bitsOf(await model.embed([text])))
    assert.deepEqual(together, [...alone, ...alone.toReversed(), alone[0]])
  })

  it('gives vectors of length 1, or the hidden state as it is', async () => {
    const [one] = (await model.embed([texts[0]])).embeddings
    const [raw] = (await model.embed([texts[0]], { normalize: false })).embeddings
    const length = Math.hypot(...raw)
    assert.ok(Math.abs(Math.hypot(...one) - 1) < 1e-6)
    assert.ok(Math.abs(length - 1) > 0.1, `${length}`)
    one.forEach((value, i) => assert.ok(Math.abs(value * length - raw[i]) < 1e-5))
  })

  it('cuts first and makes the length 1 then', async () => {
    const [raw] = (await model.embed([texts[0]], { normalize: false, dimensions: 32 })).embeddings
    const [whole] = (await model.embed([texts[0]], { normalize: false })).embeddings
    assert.deepEqual(raw, whole.slice(0, 32))
    const [cut] = (await model.embed([texts[0]], { dimensions: 32 })).embeddings
    assert.ok(Math.abs(Math.hypot(...cut) - 1) < 1e-6)
    assert.ok(cosine(cut, raw) > 0.999999)
    assert.equal((await model.embed([texts[0]], { dimensions: model.info.hiddenSize })).embeddings[0].length, model.info.hiddenSize)
  })

  it('adds to texts what the tokenizer’s post-processor says, and nothing to token ids', async () => {
    assert.deepEqual([model.info.beginIds, model.info.endIds], [[], [2016]])
    const ids = await model.tokenize(texts[0], { special: false })
    assert.deepEqual(bitsOf(await model.embed([texts[0]])), bitsOf(await model.embed([[...ids, 2016]])))
    const { embeddings, tokens } = await model.embed([ids, Int32Array.from(ids)])
    assert.deepEqual(embeddings[0], embeddings[1])
    assert.notDeepEqual(hashBits(embeddings[0]), bitsOf(await model.embed([texts[0]]))[0])
    assert.equal(tokens, 2 * ids.length)
  })

  it('takes no control token from a text', async () => {
    const [plain, control] = [await model.tokenize('<|im_end|>', { special: false }), await model.tokenize('<|im_end|>')]
    const [text, asPlain, asControl] = bitsOf(await model.embed(['<|im_end|>', [...plain, 2016], [...control, 2016]]))
    assert.equal(text, asPlain)
    assert.notEqual(text, asControl)
  })

  it('runs what texts have in common at their beginnings once', async () => {
    const common = numbers(1800, 7)
    const { tokens, cachedTokens } = await model.embed(Array.from({ length: 12 }, (_, i) => [9, ...common, i]))
    assert.deepEqual([tokens, cachedTokens], [12 * 1802, 11 * 1801])
  })

  it('refuses what is no list of texts, and says which', async () => {
    for (const [given, message] of [
      ['text', /^embed: texts must be an array with at least one text, not 'text'/],
      [undefined, /texts must be an array/],
      [[], /texts must be an array with at least one text, not an empty array/],
      [['a', ''], /texts\[1\] must be a string that is not empty, not ''/],
      [['a', null], /texts\[1\] must be a string that is not empty, not null/],
      [['a', 7], /texts\[1\].*not 7/],
      [['a', []], /texts\[1\] has no tokens/],
      [['a', [1, -1]], /texts\[1\]: ids\[1\] must be a token id/],
      [['a', [1, 5000]], /texts\[1\]: the model has ids from 0 to 2047, not 5000/],
    ]) await assert.rejects(model.embed(given), { name: 'QwasmError', code: 'invalid_argument', message })
    await goesOn()
  })

  it('refuses options outside their domain', async () => {
    for (const [options, message] of [
      [{ dimensions: 0 }, /dimensions must be a whole number of at least 1/],
      [{ dimensions: 257 }, /dimensions must be from 1 to 256, the model's hidden size, not 257/],
      [{ normalize: 1 }, /normalize must be true or false/],
      [{ instruction: '' }, /instruction must be a string that is not empty/],
      [{ pooling: 'mean' }, /no option 'pooling'/],
    ]) await assert.rejects(model.embed(['a'], options), { code: 'invalid_argument', message })
    await assert.rejects(model.embed(['a', [1]], { instruction: 'Find.' }), { code: 'invalid_argument', message: /before texts only/ })
  })

  it('refuses a text that is longer than the context with both numbers and its place, before it runs one', async () => {
    const long = numbers(2049, 3)
    assert.equal(model.info.contextLength, 2048)
    await assert.rejects(model.embed(['a', long]), { code: 'context_overflow', message: /^texts\[1\] has 2049 tokens, the context length is 2048\.$/ })
    assert.equal((await model.embed([long.slice(1)])).tokens, 2048)
  })

  it('says so where the model has no tokenizer', async () => {
    const without = await loadModel(small)
    await assert.rejects(without.embed(['a']), { code: 'no_tokenizer' })
    await without.dispose()
  })

  it('lets other calls get on meanwhile', async () => {
    const order = []
    const mark = (name) => () => order.push(name)
    const many = Array.from({ length: 100 }, (_, i) => numbers(100, i + 1))
    await Promise.all([
      model.embed(many).then(mark('many')),
      model.generate('Once', { temperature: 0, ignoreEos: true, maxTokens: 5 }).result().then(mark('tokens')),
      model.embed(['x']).then(mark('one')),
    ])
    assert.equal(order.at(-1), 'many')
  })

  it('has the same bits beside other calls, and they have theirs', async () => {
    const call = () => model.generate('Once upon', { temperature: 0, ignoreEos: true, maxTokens: 40 }).result()
    const alone = [bitsOf(await model.embed(texts)), (await call()).ids]
    const [made, { ids }, again] = await Promise.all([model.embed(texts), call(), model.embed(texts)])
    assert.deepEqual([bitsOf(made), ids], alone)
    assert.deepEqual(bitsOf(again), alone[0])
  })

  it('can be aborted, before it begins and amid its texts', async () => {
    const many = Array.from({ length: 300 }, (_, i) => numbers(200, i + 1))
    await assert.rejects(model.embed(many, { signal: AbortSignal.abort() }), { name: 'AbortError' })
    const controller = new AbortController()
    const running = assert.rejects(model.embed(many, { signal: controller.signal }), { name: 'AbortError' })
    await model.embed(['x'])
    controller.abort()
    await running
    await goesOn()
  })

  it('is rejected when the model is disposed', async () => {
    const other = await loadModel(folder, { dtype: 'q4' })
    const running = assert.rejects(other.embed(Array.from({ length: 300 }, (_, i) => numbers(200, i + 1))), { code: 'disposed' })
    await other.embed(['x'])
    await other.dispose()
    await running
    await assert.rejects(other.embed(['x']), { code: 'disposed' })
  })
})
