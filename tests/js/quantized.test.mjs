// q8 and q4 weights under Node.js: the bits of the native scalar build, fewer bytes, answers that are still right.
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { loadModel } from '../../dist/node.js'
import { expectedBits, goldenCases, goldenModels, root, wordHash } from '../support/golden.mjs'
import { nodeBest, nodeVariants } from '../support/variants.mjs'

const demo = goldenModels.find(({ name }) => name === 'demo')
const cases = goldenCases(demo.goldenFolder)
const folder = join(root, demo.folder)

const RUNGS = [
  ...nodeVariants.map((variant) => (variant.endsWith('-single') ? { variant } : { variant, threads: 2 })),
  { variant: nodeBest, threads: 3 },
]

for (const dtype of ['q8', 'q4']) {
  describe(dtype, () => {
    for (const rung of RUNGS) {
      it(`has the bits of the native scalar build in ${rung.variant} with ${rung.threads ?? 1} thread(s)`, async () => {
        const model = await loadModel(folder, { dtype, kv: 'f32', ...rung })
        assert.equal(model.info.dtype, dtype)
        for (const { name, ids, positions } of cases) {
          const logits = await model.logits(ids, { positions })
          assert.equal(wordHash(logits), expectedBits(`demo ${dtype}`, name), name)
        }
        await model.dispose()
      })
    }

    it('takes fewer bytes and still adds', async () => {
      const exact = await loadModel(folder, { dtype: 'exact' })
      const model = await loadModel(folder, { dtype })
      const ratio = model.info.weightBytes / exact.info.weightBytes
      assert.ok(ratio < (dtype === 'q8' ? 0.54 : 0.29), `${ratio} of the stored bytes`)
      const { content } = await model.chat([{ role: 'user', content: 'What is 47 + 85?' }], { temperature: 0 }).result()
      assert.equal(content, '47 + 85 = 132')
      await Promise.all([exact.dispose(), model.dispose()])
    })
  })
}

it('refuses a dtype that does not exist by name', async () => {
  await assert.rejects(loadModel(folder, { dtype: 'q2' }), { code: 'invalid_argument', message: /q2/ })
})
