// Every golden model in Chromium, in all four modules, through the public API: the bits of the native build (which is held against
// transformers) and the greedy ids of transformers; then the same bits with q8 and q4 weights.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { useBlankPage } from '../support/chromium.mjs'
import { expectedBits, goldenCases, goldenModels, quantizedRuns } from '../support/golden.mjs'
import { computeInPage } from '../support/page-bits.mjs'
import { VARIANTS } from '../support/variants.mjs'

const chromium = useBlankPage()

for (const { name, folder, goldenFolder } of goldenModels) {
  describe(`${name} in Chromium`, () => {
    const cases = goldenCases(goldenFolder)
    const contextLength = Math.max(...cases.map(({ ids, greedy }) => ids.length + greedy.length))

    for (const variant of VARIANTS) {
      it(`agrees with transformers and the native build, bit for bit, in ${variant}`, async () => {
        const asked = cases.map(({ ids, positions, greedy }) => ({ ids, positions, maxTokens: greedy.length }))
        const options = { dtype: 'exact', variant, contextLength }
        const computed = await chromium.page.evaluate(computeInPage, { folder: `/${folder}/`, options, cases: asked })
        assert.equal(computed.variant, variant)
        if (variant.endsWith('-single')) assert.equal(computed.threads, 1)
        const expected = cases.map(golden => ({ bits: expectedBits(name, golden.name), greedy: golden.greedy }))
        assert.deepEqual(computed.results, expected)
      })
    }
  })
}

for (const { name: run, options } of quantizedRuns) {
  describe(`${run} in Chromium`, () => {
    const { folder, goldenFolder } = goldenModels.find(model => model.name === 'demo')
    const cases = goldenCases(goldenFolder).map(({ name: caseName, ids, positions }) => ({ caseName, ids, positions, maxTokens: 0 }))

    for (const variant of VARIANTS) {
      it(`has the bits of the native build in ${variant}`, async () => {
        const computed = await chromium.page.evaluate(computeInPage, { folder: `/${folder}/`, options: { ...options, variant }, cases })
        assert.equal(computed.variant, variant)
        assert.equal(computed.kernels, variant.replace('-single', ''))
        assert.deepEqual(computed.results.map(({ bits }) => bits), cases.map(({ caseName }) => expectedBits(run, caseName)))
      })
    }
  })
}

it('complains about nothing in the console', () => {
  assert.deepEqual(chromium.page.complaints, [])
})
