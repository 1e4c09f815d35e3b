// Models written as GGUF and loaded back: the bits that were written, the same ids, the same answers.
import assert from 'node:assert/strict'
import { createWriteStream, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Writable } from 'node:stream'
import { describe, it } from 'node:test'
import { loadModel } from '../../dist/node.js'
import { demo, small, temporaryFolder } from './support/models.mjs'

const ids = [3, 50, 99, 7, 300, 12, 45, 8]

async function save(model, path) {
  await model.saveGguf(Writable.toWeb(createWriteStream(path)), { name: 'round trip' })
  return readFileSync(path)
}

/** How a file is loaded whose matrices are what `dtype` makes of them. */
const asStored = dtype => (dtype === 'exact' ? 'exact' : 'stored')

for (const dtype of ['q8', 'q4', 'exact']) {
  describe(`a ${dtype} model that was saved as GGUF`, () => {
    it('is the same model when it is loaded, and when it is saved again', async () => {
      const folder = temporaryFolder()
      const model = await loadModel(demo, { dtype, kv: 'f32' })
      const path = join(folder, 'demo.gguf')
      const file = await save(model, path)
      const back = await loadModel(path, { dtype: asStored(dtype), kv: 'f32' })
      assert.deepEqual(await save(back, join(folder, 'again.gguf')), file)
      // bfloat16's 8 bits fit into float16's 11, and no weight of the demo model is so small that float16 must round it far.
      const [expected, found] = [await model.logits(ids), await back.logits(ids)]
      if (dtype === 'exact') expected.forEach((logit, i) => assert.ok(Math.abs(found[i] - logit) < 1e-4, `${i}: ${found[i]}, not ${logit}`))
      else assert.deepEqual(found, expected)
      assert.deepEqual(new Set(back.info.eosTokenIds), new Set(model.info.eosTokenIds))
      const question = [{ role: 'user', content: 'What is 47 + 85?' }]
      assert.deepEqual(await back.encodeChat(question, { thinking: false }), await model.encodeChat(question, { thinking: false }))
      const answer = loaded => loaded.chat(question, { temperature: 0 }).result().then(({ content }) => content)
      assert.equal(await answer(back), await answer(model))
      await Promise.all([model.dispose(), back.dispose()])
    })

    it('needs no tokenizer', async () => {
      const folder = temporaryFolder()
      const model = await loadModel(small, { dtype, kv: 'f32' })
      const path = join(folder, 'small.gguf')
      await save(model, path)
      const back = await loadModel(path, { dtype: asStored(dtype), kv: 'f32' })
      assert.equal(back.info.hasTokenizer, model.info.hasTokenizer)
      const [expected, found] = [await model.logits(ids), await back.logits(ids)]
      const tolerance = dtype === 'exact' ? 1e-4 : 0
      expected.forEach((logit, i) => assert.ok(Math.abs(found[i] - logit) <= tolerance, `${i}: ${found[i]}, not ${logit}`))
      await Promise.all([model.dispose(), back.dispose()])
    })
  })
}
