// The demo model under every Node.js that is supported: the same bits and tokens, each on its best rung.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { promisify } from 'node:util'
import { NODE_VERSIONS, nodeProgram } from '../../scripts/setup.mjs'
import { expectedBits, goldenCases, root } from '../support/golden.mjs'

const RUNGS = {
  20: { variant: 'simd', why: 'no relaxed SIMD: this browser or Node.js does not have it' },
  24: { variant: 'relaxed', why: 'relaxed SIMD and threads are there' },
}
const cases = goldenCases('tests/golden/demo')

for (const major of Object.keys(NODE_VERSIONS)) {
  describe(`Node.js ${major}`, () => {
    for (const dtype of ['exact', 'q8', 'q4']) {
      it(`gives the bits of the native build${dtype === 'exact' ? " and transformers' tokens" : ''}: ${dtype}`, async () => {
        const { stdout } = await promisify(execFile)(nodeProgram(major), [join(root, 'tests/js/support/answers.mjs'), dtype])
        const { version, variant, threads, why, results } = JSON.parse(stdout)
        assert.equal(version.split('.')[0], major)
        assert.deepEqual({ variant, why }, RUNGS[major])
        assert.ok(threads >= 1)
        const name = dtype === 'exact' ? 'demo' : `demo ${dtype}`
        assert.deepEqual(results.map(({ bits }) => bits), cases.map((golden) => expectedBits(name, golden.name)))
        if (dtype === 'exact') assert.deepEqual(results.map(({ ids }) => ids), cases.map(({ greedy }) => greedy))
      })
    }
  })
}
