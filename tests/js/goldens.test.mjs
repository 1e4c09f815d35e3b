// Every golden model under Node.js: logits and greedy ids as transformers computes them, in all modules, the same bits for all threads.
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { loadModel } from '../../dist/node.js'
import { expectedBits, goldenCases, goldenModels, hashBits, root, wordHash, worstDeviation } from '../support/golden.mjs'
import { nodeBest, nodeVariants } from '../support/variants.mjs'

const RUNGS = [
  ...nodeVariants.map((variant) => (variant.endsWith('-single') ? { variant } : { variant, threads: 2 })),
  { variant: nodeBest, threads: 1 },
  { variant: nodeBest, threads: 4 },
]

for (const { name, folder, goldenFolder } of goldenModels) {
  describe(name, () => {
    const cases = goldenCases(goldenFolder)
    const contextLength = Math.max(...cases.map(({ ids, greedy }) => ids.length + greedy.length))
    const hashes = []

    for (const [index, rung] of RUNGS.entries()) {
      const threads = rung.threads ?? 1
      it(`agrees with transformers in ${rung.variant} with ${threads} thread${threads === 1 ? '' : 's'}`, async () => {
        const model = await loadModel(join(root, folder), { dtype: 'exact', contextLength, ...rung })
        assert.deepEqual([model.info.variant, model.info.threads], [rung.variant, threads])
        for (const [number, golden] of cases.entries()) {
          const logits = await model.logits(golden.ids, { positions: golden.positions })
          if (index === 0) {
            const worst = worstDeviation(logits, golden.logits, golden.vocabSize)
            assert.ok(worst <= 1, `${golden.name}: the worst logit is ${worst} tolerances away`)
            hashes.push(hashBits(logits))
            assert.equal(wordHash(logits), expectedBits(name, golden.name), `${golden.name}: the bits of the native scalar build`)
          }
          assert.equal(hashBits(logits), hashes[number], `${golden.name}: the same bits as with other threads`)
          const { ids } = await model.generate(golden.ids, { temperature: 0, maxTokens: golden.greedy.length }).result()
          assert.deepEqual(ids, golden.greedy, golden.name)
        }
        await model.dispose()
      })
    }
  })
}
