// GGUF files in Chromium, by address and chosen by a person: the bits of Node.js, which are held against transformers there, in all modules.
import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { loadModel } from '../../dist/node.js'
import { useBlankPage } from '../support/chromium.mjs'
import { ggufGoldens, root, wordHash } from '../support/golden.mjs'
import { computeInPage } from '../support/page-bits.mjs'
import { VARIANTS } from '../support/variants.mjs'

const folder = join(root, 'tests/golden/gguf')
const NAME = 'qwen3-q4_0'
const parts = readdirSync(folder).filter(file => file.startsWith('qwen3-parts'))
const cases = ggufGoldens(NAME)
const chromium = useBlankPage()

/** What Node.js computes. */
async function bitsInNode(file, dtype) {
  const model = await loadModel(join(folder, file), { dtype, variant: 'simd-single' })
  const bits = []
  for (const { ids, positions } of cases) bits.push(wordHash(await model.logits(ids, { positions })))
  await model.dispose()
  return bits
}

describe('a GGUF file in Chromium', () => {
  for (const dtype of ['exact', 'stored']) {
    for (const variant of VARIANTS) {
      it(`has the bits of Node.js in ${variant}, ${dtype}`, async () => {
        const asked = cases.map(({ ids, positions, greedy }) => ({ ids, positions, maxTokens: dtype === 'exact' ? greedy.length : 0 }))
        const computed = await chromium.page.evaluate(computeInPage, { folder: `/tests/golden/gguf/${NAME}.gguf`, options: { dtype, variant }, cases: asked })
        assert.equal(computed.variant, variant)
        assert.deepEqual(computed.results.map(({ bits }) => bits), await bitsInNode(`${NAME}.gguf`, dtype))
        if (dtype === 'exact') assert.deepEqual(computed.results.map(({ greedy }) => greedy), cases.map(({ greedy }) => greedy))
      })
    }
  }

  it('may be parts that a person chose', async () => {
    await chromium.page.setContent('<input type=file multiple>')
    await chromium.page.setInputFiles('input', parts.map(part => join(folder, part)))
    const bits = await chromium.page.evaluate(async ({ cases }) => {
      const { loadModel } = await import('/dist/browser.js')
      const model = await loadModel(document.querySelector('input').files, { dtype: 'exact' })
      const hashes = []
      for (const { ids, positions } of cases) {
        let hash = 2166136261
        for (const word of new Uint32Array((await model.logits(ids, { positions })).buffer)) hash = Math.imul(hash ^ word, 16777619)
        hashes.push((hash >>> 0).toString(16).padStart(8, '0'))
      }
      await model.dispose()
      return hashes
    }, { cases: cases.map(({ ids, positions }) => ({ ids, positions })) })
    assert.deepEqual(bits, await bitsInNode(parts[0], 'exact'))
  })

  it('complains about nothing in the console', () => assert.deepEqual(chromium.page.complaints, []))
})
