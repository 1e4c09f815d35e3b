// Embeddings and rankings in Chromium: the bits that Node.js gives.
import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { after, before, describe, it } from 'node:test'
import { loadModel } from '../../dist/node.js'
import { embeddingModel, embeddingTokenizer, golden } from '../js/support/embedding-model.mjs'
import { demo } from '../js/support/models.mjs'
import { useBlankPage } from '../support/chromium.mjs'

const chromium = useBlankPage()
let model
const options = { dtype: 'exact' }

before(async () => {
  model = await loadModel(embeddingModel(), options)
})
after(async () => {
  await model?.dispose()
})

describe('in Chromium', () => {
  it('embeddings and rankings have the bits that they have under Node.js', async () => {
    const texts = golden.texts.map(({ text }) => text)
    const given = { names: readdirSync(demo), tokenizer: embeddingTokenizer(), texts, ranking: golden.rankings[0], options }
    const found = await chromium.page.evaluate(async ({ names, tokenizer, texts, ranking, options }) => {
      const { loadModel } = await import('/dist/browser.js')
      const file = async (name) => new File([name === 'tokenizer.json' ? tokenizer : await (await fetch(`/models/demo/${name}`)).blob()], name)
      const model = await loadModel(await Promise.all(names.map(file)), options)
      const { embeddings, tokens } = await model.embed(texts)
      const ranked = await model.rerank(ranking.query, ranking.documents)
      await model.dispose()
      return { embeddings: embeddings.map((values) => Array.from(values)), tokens, ranked }
    }, given)
    const { embeddings, tokens } = await model.embed(texts)
    assert.deepEqual(found.embeddings.map((values) => Float32Array.from(values)), embeddings)
    assert.equal(found.tokens, tokens)
    assert.deepEqual(found.ranked, await model.rerank(given.ranking.query, given.ranking.documents))
  })
})
