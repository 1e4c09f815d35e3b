// Ranking: scores of transformers, the same bits in every module, and what is refused.
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { loadModel } from '../../dist/node.js'
import { nodeVariants } from '../support/variants.mjs'
import { embeddingModel, golden } from './support/embedding-model.mjs'
import { demo, small } from './support/models.mjs'
import { importSource } from './support/source.mjs'

const { rank } = await importSource('rerank.ts')
const folder = embeddingModel()

describe('a ranking', () => {
  for (const dtype of ['exact', 'q8', 'q4']) {
    let expected
    for (const variant of nodeVariants) {
      it(`in ${dtype} and ${variant} has ${dtype === 'exact' ? 'the scores of transformers' : 'the same bits in every module'}`, async () => {
        const model = await loadModel(folder, { dtype, variant })
        const rankings = []
        for (const { query, documents, instruction, scores } of golden.rankings) {
          const ranking = await model.rerank(query, documents, { instruction })
          assert.deepEqual(ranking.map(({ index }) => index).sort(), [...documents.keys()])
          assert.deepEqual(ranking.toSorted((a, b) => b.score - a.score), ranking, 'falling')
          if (dtype === 'exact') for (const { index, score } of ranking) assert.ok(Math.abs(score - scores[index]) <= 1e-4, `${index}: ${score}, not ${scores[index]}`)
          rankings.push(ranking)
        }
        expected ??= rankings
        assert.deepEqual(rankings, expected)
        await model.dispose()
      })
    }
  }

  it('is a softmax of two logits, to the last bits that a double has', () => {
    const leads = Array.from({ length: 400 }, (_, i) => (i - 200) / 7)
    for (const { index, score } of rank(leads)) {
      const right = 1 / (1 + Math.exp(-leads[index]))
      assert.ok(Math.abs(score - right) <= 1e-12 * right, `${leads[index]}: ${score}, not ${right}`)
    }
    assert.deepEqual(rank([-1000, 1000, 0]).map(({ score }) => score), [1, 0.5, 0])
  })

  it('tells apart what is nearly certain, and leaves equals in their order', () => {
    assert.deepEqual(rank([40, 1, 41, 1]).map(({ index }) => index), [2, 0, 1, 3])
  })
})

describe('model.rerank', () => {
  let model
  const { query, documents } = golden.rankings[0]
  before(async () => (model = await loadModel(folder, { dtype: 'exact' })))
  after(() => model.dispose())

  it('gives a document the score that it has alone', async () => {
    const together = await model.rerank(query, [...documents, documents[0]])
    for (const { index, score } of together) {
      assert.deepEqual(await model.rerank(query, [documents[index % documents.length]]), [{ index: 0, score }])
    }
  })

  it('refuses what is no query or no list of documents, and says which', async () => {
    for (const [query, documents, message] of [
      ['', ['a'], /^rerank: the query must be a string that is not empty, not ''/],
      [7, ['a'], /the query.*not 7/],
      ['q', 'a', /documents must be an array with at least one text, not 'a'/],
      ['q', [], /documents must be an array with at least one text, not an empty array/],
      ['q', ['a', ''], /documents\[1\] must be a string that is not empty/],
      ['q', ['a', [1, 2]], /documents\[1\] must be a string that is not empty, not an array of 2/],
    ]) await assert.rejects(model.rerank(query, documents), { name: 'QwasmError', code: 'invalid_argument', message })
    await assert.rejects(model.rerank('q', ['a'], { dimensions: 3 }), { code: 'invalid_argument', message: /no option 'dimensions'/ })
    assert.equal((await model.rerank('q', ['a'])).length, 1)
  })

  it('refuses a document that is too long with both numbers and its place', async () => {
    const message = /^the prompt of documents\[1\] has \d{4} tokens, the context length is 2048\.$/
    await assert.rejects(model.rerank(query, ['a', 'word '.repeat(2000)]), { code: 'context_overflow', message })
  })

  it('says so where the model cannot be asked', async () => {
    const without = await loadModel(small)
    await assert.rejects(without.rerank('q', ['a']), { code: 'no_tokenizer' })
    await without.dispose()
    const plain = await loadModel(demo)
    await assert.rejects(plain.rerank('q', ['a']), { code: 'unsupported', message: /no token 'yes'/ })
    await plain.dispose()
    const other = await loadModel(embeddingModel({ added_tokens: [{ id: 2016, content: '<|endoftext|>', special: true }] }))
    await assert.rejects(other.rerank('q', ['a']), { code: 'unsupported', message: /no <\|im_start\|>/ })
    await other.dispose()
  })

  it('can be aborted', async () => {
    const controller = new AbortController()
    const many = Array.from({ length: 200 }, (_, i) => `${i} ${documents[5]}`)
    const running = assert.rejects(model.rerank(query, many, { signal: controller.signal }), { name: 'AbortError' })
    await model.rerank(query, ['a'])
    controller.abort()
    await running
    assert.equal((await model.rerank(query, documents)).length, documents.length)
  })
})
