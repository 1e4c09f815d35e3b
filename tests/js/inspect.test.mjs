// qwasm inspect: published configurations against the parameter counts of transformers, from config.json alone and with tensor headers.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { cpSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { promisify } from 'node:util'
import { inspect } from '../../dist/node.js'
import { root } from '../support/golden.mjs'
import { readJson, temporaryFolder } from './support/models.mjs'

const { models } = readJson('tests/golden/parameters.json')
const configs = join(root, 'tests/golden/configs')

async function inspectByCli(folder, ...options) {
  const { stdout } = await promisify(execFile)(process.execPath, [join(root, 'dist/cli.js'), 'inspect', '--model', folder, '--json', ...options])
  return JSON.parse(stdout)
}

describe('inspect of a folder that holds only config.json', () => {
  for (const [name, golden] of Object.entries(models)) {
    it(`counts the parameters of ${name} as transformers does, by part too`, async () => {
      const { parameters, tied_embeddings: tied, stored } = await inspectByCli(join(configs, name))
      const { total, active, read_per_token: read, ...parts } = parameters
      assert.equal(total, golden.total)
      assert.deepEqual(parts, golden.parts)
      // An untied embedding is a table from which a token reads one row: that is not work.
      assert.equal(active, golden.active)
      assert.equal(read, golden.active - (tied ? 0 : golden.parts.embedding))
      assert.equal(stored, null)
    })
  }

  it('tells the attention, operations and bytes of Qwen3-0.6B', async () => {
    const report = await inspectByCli(join(configs, 'Qwen3-0.6B'), '--context', '1000', '--bandwidth', '10')
    const { attention, experts, runnable, operations_per_token: operations, memory, decode_lower_bound: bound } = report
    assert.deepEqual([attention.kind, attention.query_heads, attention.key_value_heads, attention.ratio, attention.head_dim], ['GQA', 16, 8, 2, 128])
    assert.equal(experts, null)
    assert.equal(runnable, true)
    const { total, parts: { norms } } = models['Qwen3-0.6B']
    assert.deepEqual(operations, {
      context: 1000,
      matrices: 2 * (total - norms),
      attention: 28 * 16 * 128 * 4 * 1000,
      total: 2 * (total - norms) + 28 * 16 * 128 * 4 * 1000,
    })
    const kvPerToken = 2 * 28 * 8 * 128
    assert.deepEqual(memory.kv_per_token, { f32: 4 * kvPerToken, f16: 2 * kvPerToken, q8: kvPerToken * 34 / 32 })
    assert.equal(memory.weights.bf16, 2 * (total - norms) + 4 * norms)
    assert.equal(memory.weights.q4, (total - norms) * 18 / 32 + 4 * norms)
    const milliseconds = (memory.weights.bf16 + 1000 * memory.kv_per_token.f32) / 10e9 * 1e3
    assert.ok(Math.abs(bound.milliseconds.bf16 - milliseconds) < 1e-6 * milliseconds, `${bound.milliseconds.bf16} is not ${milliseconds}`)
  })

  it('tells in what the families differ, and counts biases as vectors', async () => {
    const attentionOf = async (name) => (await inspect(join(configs, name))).attention
    const { attention, memory, operations_per_token: operations, parameters } = await inspect(join(configs, 'Qwen2.5-0.5B'))
    assert.deepEqual([attention.qkv_bias, attention.qk_norm, attention.head_dim, attention.rope_layers], [true, false, 64, 24])
    const vectors = 24 * (14 + 2 * 2) * 64 + parameters.norms
    assert.equal(memory.weights.bf16, 2 * (parameters.total - vectors) + 4 * vectors)
    assert.equal(operations.matrices, 2 * (parameters.total - vectors))
    const smollm3 = await attentionOf('SmolLM3-3B')
    assert.deepEqual([smollm3.qkv_bias, smollm3.qk_norm, smollm3.rope_layers, smollm3.rope_theta], [false, false, 27, 5e6])
    assert.equal((await attentionOf('Llama-3.2-1B')).rope_type, 'llama3')
    assert.equal((await attentionOf('Qwen3-0.6B')).qk_norm, true)
    assert.deepEqual([(await attentionOf('Mistral-7B-v0.1')).ratio, (await inspect(join(configs, 'Mistral-7B-v0.1'))).runnable], [4, true])
  })

  it('describes a mixture of experts, though it does not run here', async () => {
    const { attention, experts, runnable } = await inspect(join(configs, 'Qwen3-30B-A3B'))
    assert.equal(runnable, false)
    assert.deepEqual(experts, { count: 128, per_token: 8, intermediate_size: 768, layers: 48 })
    assert.equal(attention.ratio, 8)
  })
})

describe('inspect of a whole model', () => {
  it('reads the headers and no weights', async () => {
    const folder = temporaryFolder()
    const small = join(root, 'tests/golden/models/qwen3')
    cpSync(join(small, 'config.json'), join(folder, 'config.json'))
    const whole = await inspect(small)
    assert.deepEqual(whole.stored, { dtypes: ['BF16'], bytes: 2 * whole.parameters.total })

    // The same file with NaN for every weight: nobody looks at them.
    const weights = readFileSync(join(small, 'model.safetensors'))
    weights.fill(0xff, 8 + Number(weights.readBigUInt64LE()))
    writeFileSync(join(folder, 'model.safetensors'), weights)
    assert.deepEqual(await inspect(folder), whole)
  })

  it('counts what is stored beside what is used: a tied head that the file holds nevertheless', async () => {
    const report = await inspect(join(root, 'tests/golden/models/qwen3-tied-with-head'))
    assert.equal(report.parameters.lm_head, 0)
    assert.equal(report.stored.bytes, 2 * (report.parameters.total + report.parameters.embedding))
  })

  it('adds up the shards', async () => {
    const report = await inspect(join(root, 'tests/golden/models/qwen3-sharded-f32'))
    assert.deepEqual(report.stored, { dtypes: ['F32'], bytes: 4 * report.parameters.total })
  })
})
