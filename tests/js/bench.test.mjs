// qwasm bench and readBandwidth: that they measure something, not how much.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { promisify } from 'node:util'
import { loadModel } from '../../dist/node.js'
import { root } from '../support/golden.mjs'
import { demo, small } from './support/models.mjs'

const bench = (...options) => promisify(execFile)(process.execPath, [join(root, 'dist/cli.js'), 'bench', '--model', demo, '--quick', ...options])

const isPositive = (number) => Number.isFinite(number) && number > 0

describe('qwasm bench', () => {
  it('measures every combination that was asked, and prints one JSON object', { timeout: 120_000 }, async () => {
    const { stdout, stderr } = await bench('--dtype', 'exact,q4', '--variant', 'simd,simd-single', '--threads', '2', '--json')
    const { model, machine, runs, failed, logitsAgree } = JSON.parse(stdout)
    assert.equal(stdout.trim().split('\n').length, 1)
    assert.equal(stderr.trim().split('\n').length, 4)
    assert.deepEqual([model, machine.node, failed, logitsAgree], [demo, process.versions.node, [], true])
    assert.ok(machine.cpu && machine.v8 && machine.hardwareThreads >= 1 && Array.isArray(machine.flags))
    assert.deepEqual(
      runs.map(({ dtype, variant, threads }) => [dtype, variant, threads]),
      [
        ['exact', 'simd', 2],
        ['exact', 'simd-single', 1],
        ['q4', 'simd', 2],
        ['q4', 'simd-single', 1],
      ]
    )
    for (const run of runs) {
      assert.deepEqual(run.prefill.map(({ tokens }) => tokens), [32, 128])
      assert.deepEqual(run.decode.map(({ position }) => position), [64, 256])
      const numbers = [run.loadMs, run.readBandwidth, ...Object.values(run.memory)]
      for (const { firstTokenMs, tokensPerSecond } of run.prefill) numbers.push(firstTokenMs, tokensPerSecond)
      for (const { tokensPerSecond, bytesPerToken, bytesPerSecond } of run.decode) numbers.push(tokensPerSecond, bytesPerToken, bytesPerSecond)
      for (const number of numbers) assert.ok(isPositive(number), JSON.stringify(run))
      assert.ok(run.memory.peak > run.memory.weights)
      assert.equal(run.decode[0].attentionShare, 0)
      assert.ok(run.decode[1].bytesPerToken > run.decode[0].bytesPerToken)
    }
    const [exact, , q4] = runs.map(({ logitsHash }) => logitsHash)
    assert.match(exact, /^[0-9a-f]{16}$/)
    assert.notEqual(exact, q4)
  })

  it('prints a table for people', { timeout: 60_000 }, async () => {
    const { stdout } = await bench('--dtype', 'q8', '--variant', 'simd')
    for (const words of ['q8, kv ', 'first token', 'position', 'tokens/s', 'GB/s', 'logits: ']) assert.ok(stdout.includes(words), words)
  })

  it('says why a combination does not run, and goes on with the others', { timeout: 60_000 }, async () => {
    const { stdout } = await bench('--dtype', 'q3,q8', '--variant', 'simd', '--json')
    const { runs, failed } = JSON.parse(stdout)
    assert.deepEqual(runs.map(({ dtype }) => dtype), ['q8'])
    assert.equal(failed.length, 1)
    assert.match(failed[0].reason, /^loadModel: the option dtype .*'q3'/)
  })
})

describe('readBandwidth', () => {
  it('is a positive number, while a generation runs too', async () => {
    for (const options of [{ threads: 2 }, { variant: 'simd-single' }]) {
      const model = await loadModel(small, options)
      const running = model.generate([1, 2, 3], { maxTokens: 20, ignoreEos: true }).result()
      assert.ok(isPositive(await model.readBandwidth()))
      assert.equal((await running).ids.length, 20)
      await model.dispose()
      await assert.rejects(model.readBandwidth(), { code: 'disposed' })
    }
  })
})
