// Memory that is not there, at every point where the module asks for more: a typed error with numbers and a hint, and life goes on.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { loadModel, loadTokenizer } from '../../dist/node.js'
import { writeHugeModel } from '../support/huge-model.mjs'
import { nodeBest, nodeBestSingle } from '../support/variants.mjs'
import { modulesWith, workerAfter } from './support/broken-parts.mjs'
import { demo, qwen3Tokenizer, small, temporaryFolder } from './support/models.mjs'

const SENTENCE =
  /^no memory for (.+): [\d,]+ bytes were asked; .* \(the module's memory has [\d,]+ bytes and may grow to 4,294,967,296\)$/

/** A worker whose modules' memory grows `times` times, and then no more: as on a machine that has nothing left. */
const growing = (times) =>
  workerAfter(`let left = ${times}
    const { grow } = WebAssembly.Memory.prototype
    WebAssembly.Memory.prototype.grow = function (pages) {
      if (left-- <= 0) throw new RangeError('WebAssembly.Memory.grow(): Unable to grow instance memory')
      return grow.call(this, pages)
    }`)

/** Modules that begin with nearly all of their first 32 MiB in use, so that what comes next needs growing. */
const full = modulesWith(`for (let at = 0; at < 2 ** 20; at++) {
  const before = module.wasmMemory.buffer.byteLength
  if (module._qw_alloc(16384) === 0 || module.wasmMemory.buffer.byteLength > before) break
}`)

function message(error) {
  assert.equal(error.code, 'out_of_memory', error.stack)
  return error.message
}

/** What a promise is rejected with. */
const failure = (promise) => promise.then(() => assert.fail('there was memory enough'), (error) => error)

/** Runs `work` with memory that grows never, then `step` times, `2 * step` times …, until it succeeds; what was lacking on the way. */
async function lackingMemory(work, step = 1) {
  const lacked = new Set()
  for (let times = 0; times < 1000; times += step) {
    try {
      await work({ workerUrl: growing(times), wasmUrl: full })
      return lacked
    } catch (error) {
      const found = SENTENCE.exec(message(error))
      assert.ok(found, error.message)
      lacked.add(found[1])
    }
  }
  assert.fail('it never succeeded')
}

describe('memory that ends', () => {
  for (const [variant, dtype] of [[nodeBestSingle, 'q4'], [nodeBest, 'exact']]) {
    it(`at any point of loading and answering fails that call with numbers: ${variant}, ${dtype}`, async () => {
      const lacked = await lackingMemory(async (parts) => {
        const model = await loadModel(demo, { ...parts, variant, dtype, kv: 'f32', threads: 2 })
        try {
          const ids = await model.tokenize('Once upon a time')
          await model.generate([...ids, ...Array(2000).fill(7)], { maxTokens: 3 }).result()
        } finally {
          await model.dispose()
        }
      })
      for (const what of ['weights', '256 more positions of the KV cache', 'small things', 'bytes on their way into the module'])
        assert.ok(lacked.has(what), `${what}: ${[...lacked].join(', ')}`)
    })
  }

  it('at any point of loading a tokenizer', async () => {
    const lacked = await lackingMemory(async (parts) => {
      const tokenizer = await loadTokenizer(qwen3Tokenizer, parts)
      await tokenizer.dispose()
    }, 4)
    assert.ok(lacked.has('small things'))
  })

  it('while answering leaves the model usable where nothing small was lost', async () => {
    // Logits have a sequence of their own, the second one here: before it begins, all but some kilobytes are taken.
    const wasmUrl = modulesWith(`let sessions = 0
      const begin = module._qw_session_new
      const take = (engine) => {
        if (++sessions === 2) while (module._qw_alloc(65536) !== 0);
        return begin(engine)
      }
      Object.defineProperty(module, '_qw_session_new', { get: () => take, set: () => {} }) // the glue sets it again at the first call`)
    const model = await loadModel(demo, { workerUrl: growing(0), wasmUrl, dtype: 'exact' })
    const answer = () => model.generate([1, 2, 3], { maxTokens: 5, temperature: 0, ignoreEos: true }).result()
    const { ids } = await answer()
    const error = await failure(model.logits([1, 2, 3]))
    assert.match(message(error), /^no memory for 256 more positions of the KV cache: .*; a smaller contextLength or kv 'q8' takes less \(/)
    assert.deepEqual((await answer()).ids, ids)
    await model.dispose()
  })
})

describe('weights that are too large', () => {
  const folder = temporaryFolder()
  writeHugeModel(folder, 5)

  for (const [dtype, hint] of [['exact', /dtype 'q8' or 'q4' takes less/], ['q8', /dtype 'q4' takes less/], ['q4', /a smaller model takes less/]]) {
    it(`as ${dtype} are refused before any is fetched, with a hint`, async () => {
      const workerUrl = dtype === 'exact' ? undefined : growing(0)
      const error = await failure(loadModel(folder, { dtype, workerUrl }))
      assert.match(message(error), SENTENCE)
      assert.match(error.message, /^no memory for weights: \d,\d{3},\d{3},\d{3} bytes/)
      assert.match(error.message, hint)
    })
  }

  it('leave the process able to load a smaller model', async () => {
    const model = await loadModel(small)
    assert.equal((await model.generate([1, 2, 3], { maxTokens: 4, ignoreEos: true }).result()).ids.length, 4)
    await model.dispose()
  })
})

describe('memory that is missing outside the module', () => {
  it('for starting it is an error of memory too', async () => {
    const words = 'WebAssembly.instantiate(): Out of memory: Cannot allocate Wasm memory for new instance'
    const workerUrl = workerAfter(`WebAssembly.instantiate = async () => { throw new RangeError('${words}') }`)
    const error = await failure(loadModel(small, { workerUrl, variant: nodeBestSingle }))
    assert.match(message(error), /^no memory for the module .*: 33,554,432 bytes were asked; .*Cannot allocate/)
  })

  it('for the logits that were asked names their size', async () => {
    const workerUrl = workerAfter(`const Real = Uint8Array
      globalThis.Uint8Array = new Proxy(Real, { construct(target, [size, ...rest]) {
        if (size === 4 * 3 * 384) throw new RangeError('Array buffer allocation failed')
        return new Real(size, ...rest)
      } })`)
    const model = await loadModel(small, { workerUrl })
    const error = await failure(model.logits([1, 2, 3]))
    assert.equal(message(error), 'no memory for the logits of 3 positions: 4,608 bytes were asked; fewer positions take less')
    await model.dispose()
  })
})
