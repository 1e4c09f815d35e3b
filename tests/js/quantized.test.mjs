// q8 and q4 weights under Node.js: the bits of the native scalar build, fewer bytes, answers that are still right.
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { loadModel } from '../../dist/node.js'
import { expectedBits, goldenCases, goldenModels, quantizedRuns, root, wordHash } from '../support/golden.mjs'
import { nodeBest, nodeVariants } from '../support/variants.mjs'

const demo = goldenModels.find(({ name }) => name === 'demo')
const cases = goldenCases(demo.goldenFolder)
const folder = join(root, demo.folder)

const RUNGS = [
  ...nodeVariants.map((variant) => (variant.endsWith('-single') ? { variant } : { variant, threads: 2 })),
  { variant: nodeBest, threads: 3 },
]

for (const { name: run, options } of quantizedRuns) {
  describe(run, () => {
    for (const rung of RUNGS) {
      it(`has the bits of the native scalar build in ${rung.variant} with ${rung.threads ?? 1} thread(s)`, async () => {
        const model = await loadModel(folder, { ...options, ...rung })
        assert.equal(model.info.dtype, options.dtype)
        assert.equal(model.info.kv, options.kv ?? 'f16')
        assert.equal(model.info.kernels, rung.variant.replace('-single', ''))
        for (const { name, ids, positions } of cases) {
          const logits = await model.logits(ids, { positions })
          assert.equal(wordHash(logits), expectedBits(run, name), name)
        }
        await model.dispose()
      })
    }
  })
}

for (const dtype of ['q8', 'q4']) {
  describe(dtype, () => {
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

it('is what auto means: q8 while it fits, and float32 keys and values only in exact mode', async () => {
  const [auto, exact] = await Promise.all([loadModel(folder), loadModel(folder, { dtype: 'exact' })])
  assert.deepEqual([auto.info.dtype, auto.info.kv, exact.info.dtype, exact.info.kv], ['q8', 'f16', 'exact', 'f32'])
  assert.equal(exact.info.kvBytesPerToken, 2 * auto.info.kvBytesPerToken)
  await Promise.all([auto.dispose(), exact.dispose()])
})

it('stored is exact mode where the file holds floats', async () => {
  const [stored, exact] = await Promise.all(['stored', 'exact'].map(dtype => loadModel(folder, { dtype })))
  assert.deepEqual([stored.info.dtype, stored.info.kv, stored.info.weightBytes], ['stored', 'f32', exact.info.weightBytes])
  const [found, expected] = await Promise.all([stored, exact].map(model => model.logits([3, 1, 4, 1, 5])))
  assert.deepEqual(found, expected)
  await Promise.all([stored.dispose(), exact.dispose()])
})

it('refuses a dtype that does not exist by name', async () => {
  await assert.rejects(loadModel(folder, { dtype: 'q2' }), { code: 'invalid_argument', message: /q2/ })
})
