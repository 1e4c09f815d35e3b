// What decides the rung: the probe of relaxed SIMD, engines that fail it, and the memory that is granted.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { afterEach, describe, it } from 'node:test'
import { promisify } from 'node:util'
import { loadModel } from '../../dist/node.js'
import { root } from '../support/golden.mjs'
import { nodeHasRelaxed } from '../support/variants.mjs'
import { workerAfter } from './support/broken-parts.mjs'
import { small } from './support/models.mjs'
import { importSource } from './support/source.mjs'

const { relaxedSimdProblem } = await importSource('runtime/probe.ts')
const { deviceGigabytes, reserveSharedMemory, weightBudget } = await importSource('runtime/memory.ts')

const GIGABYTE = 2 ** 30

/** Puts an engine in JavaScript in WebAssembly's place; `spoil` changes its results: those of the i16 dot (8) and of the i32 dot (4). */
function engineThat(spoil) {
  globalThis.WebAssembly = {
    validate: () => true,
    Module: class {},
    Instance: class {
      exports = exportsOf(spoil)
    },
  }
}

function exportsOf(spoil) {
  const buffer = new ArrayBuffer(65536)
  const [x, w, base] = [new Int8Array(buffer, 0, 16), new Int8Array(buffer, 16, 16), new Int32Array(buffer, 32, 4)]
  const f = () => {
    const pairs = new Int16Array(buffer, 48, 8).map((_, i) => x[2 * i] * w[2 * i] + x[2 * i + 1] * w[2 * i + 1])
    const fours = base.map((start, i) => start + pairs[2 * i] + pairs[2 * i + 1])
    spoil(pairs, fours, { x, w, base })
    new Int16Array(buffer, 48, 8).set(pairs)
    new Int32Array(buffer, 64, 4).set(fours)
  }
  return { m: { buffer }, f }
}

describe('the probe of relaxed SIMD', () => {
  const real = globalThis.WebAssembly
  afterEach(() => (globalThis.WebAssembly = real))

  it('knows whether this Node.js has it', () => {
    assert.equal(relaxedSimdProblem(), nodeHasRelaxed ? undefined : 'no relaxed SIMD: this browser or Node.js does not have it')
  })

  it('accepts right numbers', () => {
    engineThat(() => {})
    assert.equal(relaxedSimdProblem(), undefined)
  })

  const wrong = {
    'one lane of the i16 dot is wrong': (pairs) => (pairs[7] += 1),
    'one lane of the i32 dot is wrong': (pairs, fours) => (fours[3] -= 1),
    'the i32 dot forgets what it adds to': (pairs, fours, { base }) => fours.set(fours.map((sum, i) => sum - base[i])),
    'the i32 dot adds lanes in another order': (pairs, fours) => fours.reverse(),
    'the signed operand is taken as unsigned': (pairs, fours, { x, w }) =>
      pairs.set(pairs.map((_, i) => (x[2 * i] & 255) * w[2 * i] + (x[2 * i + 1] & 255) * w[2 * i + 1])),
    'a sum stops at 15 bits': (pairs) => pairs.set(pairs.map((sum) => Math.max(-16384, Math.min(16383, sum)))),
  }
  for (const [name, spoil] of Object.entries(wrong)) {
    it(`refuses an engine where ${name}`, () => {
      engineThat(spoil)
      assert.equal(relaxedSimdProblem(), 'no relaxed SIMD: it gives wrong numbers here')
    })
  }

  it('refuses an engine that fails to run it, with its words', () => {
    engineThat(() => {
      throw new RangeError('no more room')
    })
    assert.match(relaxedSimdProblem(), /^no relaxed SIMD: .*no more room/)
  })
})

describe('a forced variant with relaxed SIMD', () => {
  it('is an error that says why, where there is none', async () => {
    const workerUrl = workerAfter(`const { validate } = WebAssembly
      WebAssembly.validate = (bytes) => bytes.length < 40 && validate(bytes) // plain SIMD's probe is that short`)
    for (const variant of ['relaxed', 'relaxed-single']) {
      const expected = { code: 'environment', message: new RegExp(`'${variant}'.*no relaxed SIMD: .*does not have it`) }
      await assert.rejects(loadModel(small, { variant, workerUrl }), expected)
    }
    const model = await loadModel(small, { workerUrl })
    assert.equal(model.info.variant, 'simd')
    assert.match(model.info.why, /no relaxed SIMD/)
    await model.dispose()
  })

  it('without threads says what else is lacking', async () => {
    const workerUrl = workerAfter('delete globalThis.SharedArrayBuffer')
    await assert.rejects(loadModel(small, { variant: 'relaxed', workerUrl }), {
      code: 'environment',
      message: nodeHasRelaxed ? /SharedArrayBuffer/ : /no relaxed SIMD/,
    })
  })
})

// Node.js 20 has relaxed SIMD behind a flag, and computes one of its dot products wrongly; later ones have it without a flag.
describe('Node.js with its relaxed SIMD switched on', () => {
  it('gets it where its numbers are right, and plain SIMD where they are not', async () => {
    const script = `import { loadModel } from ${JSON.stringify(join(root, 'dist/node.js'))}
      const model = await loadModel(${JSON.stringify(small)}, { threads: 2 })
      const forced = await loadModel(${JSON.stringify(small)}, { variant: 'relaxed' }).then(async (other) => {
        await other.dispose()
        return 'runs'
      }, ({ code, message }) => code + ': ' + message)
      console.log(JSON.stringify([model.info.variant, model.info.why, forced]))
      await model.dispose()`
    const flags = nodeHasRelaxed ? [] : ['--experimental-wasm-relaxed-simd']
    const { stdout } = await promisify(execFile)(process.execPath, [...flags, '--input-type=module', '-e', script])
    const [variant, why, forced] = JSON.parse(stdout)
    if (nodeHasRelaxed) {
      assert.deepEqual([variant, why, forced], ['relaxed', 'relaxed SIMD and threads are there', 'runs'])
    } else {
      assert.deepEqual([variant, why], ['simd', 'no relaxed SIMD: it gives wrong numbers here'])
      assert.match(forced, /^environment: .*'relaxed'.*wrong numbers/)
    }
  })
})

describe('memory', () => {
  const { Memory } = WebAssembly
  afterEach(() => (WebAssembly.Memory = Memory))

  it('is reserved as large as it is granted', () => {
    for (const granted of [4, 2, 1]) {
      WebAssembly.Memory = function (descriptor) {
        if (descriptor.maximum * 65536 > granted * GIGABYTE) throw new RangeError('refused')
        return new Memory(descriptor)
      }
      const { maximumBytes, shared } = reserveSharedMemory()
      assert.equal(maximumBytes, granted * GIGABYTE)
      assert.ok(shared.buffer instanceof SharedArrayBuffer)
    }
  })

  it('gives weights half of what it may grow to, and a quarter of what the device has', () => {
    for (const [maximum, device, expected] of [
      [4, undefined, 2],
      [2, undefined, 1],
      [4, 8, 2],
      [4, 4, 1],
      [4, 0.25, 0.0625],
      [1, 32, 0.5],
    ]) {
      assert.equal(weightBudget(maximum * GIGABYTE, device), expected * GIGABYTE, `${maximum} GiB, device ${device}`)
    }
  })

  it('of the device is unknown where no browser tells it', () => assert.equal(deviceGigabytes(), undefined))
})
