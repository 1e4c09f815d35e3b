// A real pretrained model out of a GGUF file, SmolLM2-135M-Instruct in Q4_1, against transformers reading the same file.
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { loadModel } from '../../dist/node.js'
import { SMALL_MODEL } from '../../scripts/setup.mjs'
import { readJson } from './support/models.mjs'

const { stride, cases, texts } = readJson('tests/golden/smollm2.json')
const path = join(SMALL_MODEL.folder, SMALL_MODEL.file)

const likeliest = logits => logits.reduce((best, logit, id) => (logit > logits[best] ? id : best), 0)

describe('SmolLM2-135M-Instruct in exact mode', () => {
  let model, vocabSize
  before(async () => {
    model = await loadModel(path, { dtype: 'exact', contextLength: 256 })
    vocabSize = model.info.vocabSize
  })
  after(() => model.dispose())

  it('has the ids of texts and of rendered conversations', async () => {
    for (const { text, ids } of texts) assert.deepEqual(await model.tokenize(text), ids, JSON.stringify(text))
    for (const { question, ids } of cases) assert.deepEqual(await model.encodeChat([{ role: 'user', content: question }]), ids, question)
  })

  it('has logits within 1e-3', async () => {
    for (const { question, ids, every, largest } of cases) {
      const logits = await model.logits(ids, { positions: 'last' })
      const expected = [...every.map((logit, i) => [i * stride, logit]), ...largest]
      const off = Math.max(...expected.map(([id, logit]) => Math.abs(logits[id] - logit)))
      assert.ok(off < 1e-3, `${question}: off by ${off}`)
    }
  })

  it('continues conversations with the same 64 tokens', async () => {
    for (const { question, ids, greedy } of cases) {
      // All of a continuation at once: each of its tokens is the likeliest after those before it.
      const positions = greedy.map((_, i) => ids.length - 1 + i)
      const logits = await model.logits([...ids, ...greedy.slice(0, -1)], { positions })
      assert.deepEqual(positions.map((_, i) => likeliest(logits.subarray(i * vocabSize, (i + 1) * vocabSize))), greedy, question)
    }
    const [{ question, greedy }] = cases
    const drawn = await model.chat([{ role: 'user', content: question }], { temperature: 0, maxTokens: 24, ignoreEos: true }).result()
    assert.deepEqual(drawn.ids, greedy.slice(0, 24))
  })
})

describe('SmolLM2-135M-Instruct as it is stored', () => {
  it('is what is loaded unless asked otherwise, takes less memory, and answers', async () => {
    const model = await loadModel(path, { contextLength: 256 })
    assert.equal(model.info.dtype, 'stored')
    assert.ok(model.info.weightBytes < 1.15 * 98_362_432, `${model.info.weightBytes} bytes`)
    const { content } = await model.chat([{ role: 'user', content: cases[3].question }], { temperature: 0, maxTokens: 40 }).result()
    assert.match(content, /^The sky is blue in one sentence because of the way the human eye perceives light\./)
    await model.dispose()
  })
})
