// A model of Qwen3-0.6B's full size with random weights: right, within its memory, and without the tied head's bytes.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readFileSync, statSync, truncateSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { promisify } from 'node:util'
import { parseRange, startServer } from '../../scripts/serve.mjs'
import { makeSyntheticQwen3 } from '../../scripts/synthetic-qwen3.mjs'
import { root, worstDeviation } from '../support/golden.mjs'
import { readJson, temporaryFolder } from './support/models.mjs'

const folder = join(root, 'build/synthetic/qwen3-0.6b')
const golden = readJson('tests/golden/synthetic-qwen3-0.6b.json')
const CONTEXT = 512
const CHUNK = 2 ** 19
const ALLOWED_BESIDE_WEIGHTS = 250e6
const timeout = 300_000

let made

before(async () => {
  made = await makeSyntheticQwen3(folder)
}, { timeout })

async function readHeader() {
  const file = await open(join(folder, 'model.safetensors'))
  const length = Number((await file.read(Buffer.alloc(8), 0, 8, 0)).buffer.readBigUInt64LE())
  const header = JSON.parse((await file.read(Buffer.alloc(length), 0, length, 8)).buffer.toString())
  await file.close()
  return { header, dataBegin: 8 + length }
}

/** Loads and generates in a process of its own, so that its memory can be measured. */
async function generate(source) {
  const script = join(root, 'tests/js/support/measured-generation.mjs')
  const args = [script, source, JSON.stringify(golden.ids), String(golden.greedy.length), String(CONTEXT)]
  const { stdout } = await promisify(execFile)(process.execPath, args, { timeout, maxBuffer: 2 ** 24 })
  return JSON.parse(stdout)
}

function checkAnswer({ ids, finishReason, picked, progress, info, peak }) {
  assert.deepEqual(ids, golden.greedy, 'the tokens of transformers')
  assert.equal(finishReason, 'length')
  const deviation = worstDeviation(Float32Array.from(picked.flat()), Float32Array.from(golden.logits.flat()), golden.sampled.length)
  assert.ok(deviation <= 1, `a logit is ${deviation} times as far from transformers as allowed`)

  const stored = made.bytes - made.headBytes
  assert.equal(info.parameters, 596_049_920)
  assert.equal(progress[0], progress[1])
  assert.ok(progress[1] < stored, 'progress counts the weights that are used')
  const allowed = stored + ALLOWED_BESIDE_WEIGHTS + CONTEXT * info.kvBytesPerToken
  assert.ok(peak > stored, 'the measurement saw the weights')
  assert.ok(peak <= allowed, `the process took ${(peak / 1e6).toFixed(0)} MB; ${(allowed / 1e6).toFixed(0)} MB are allowed`)
}

describe('the generator', () => {
  const tiny = { layers: 1, vocab: 64 }

  it('writes a folder once, the same bytes for the same seed, and others for another', async () => {
    const [first, second] = [temporaryFolder(), temporaryFolder()]
    const weights = (dir) => readFileSync(join(dir, 'model.safetensors'))
    assert.equal((await makeSyntheticQwen3(first, tiny)).made, true)
    assert.equal((await makeSyntheticQwen3(first, tiny)).made, false)
    await makeSyntheticQwen3(second, tiny)
    assert.ok(weights(first).equals(weights(second)))
    assert.equal((await makeSyntheticQwen3(second, { ...tiny, seed: 1 })).made, true)
    assert.ok(!weights(first).equals(weights(second)))
  })

  it('completes a folder whose weights were cut', async () => {
    const dir = temporaryFolder()
    const { bytes } = await makeSyntheticQwen3(dir, tiny)
    truncateSync(join(dir, 'model.safetensors'), bytes - 2)
    assert.equal((await makeSyntheticQwen3(dir, tiny)).made, true)
    assert.equal(statSync(join(dir, 'model.safetensors')).size, bytes)
  })
})

describe('a full-size model', () => {
  it('has the shapes and bytes of the one on the hub, and another head than its embedding', async () => {
    assert.equal(made.bytes, 1_503_300_328)
    const { header, dataBegin } = await readHeader()
    assert.equal(Object.keys(header).length, 1 + 2 + 1 + 28 * 11)
    assert.deepEqual(header['model.layers.27.self_attn.q_proj.weight'].shape, [2048, 1024])
    const file = await open(join(folder, 'model.safetensors'))
    const firstBytes = async (name) => (await file.read(Buffer.alloc(4096), 0, 4096, dataBegin + header[name].data_offsets[0])).buffer
    assert.notDeepEqual(await firstBytes('lm_head.weight'), await firstBytes('model.embed_tokens.weight'))
    await file.close()
  })

  it('loads from a folder and generates within its memory, without reading the tied head', { timeout }, async () => {
    const result = await generate(folder)
    checkAnswer(result)
    const stored = made.bytes - made.headBytes
    const allowed = stored + 20e6 // programs and modules are read too
    assert.ok(result.bytesRead >= stored && result.bytesRead <= allowed, `${result.bytesRead} bytes were read; at most ${allowed} are needed`)
  })

  describe('behind a URL', () => {
    let server
    const ranges = []

    before(async () => {
      server = await startServer({ mounts: { '/full-size/': folder } })
      server.server.on('request', ({ url, headers }) => {
        if (url.endsWith('/model.safetensors')) ranges.push(parseRange(headers.range, made.bytes))
      })
    })
    after(() => server?.close())

    it('loads and generates within its memory, and never asks for the tied head', { timeout }, async () => {
      checkAnswer(await generate(`${server.url}full-size/`))
      const { header, dataBegin } = await readHeader()
      const [first, end] = header['lm_head.weight'].data_offsets.map((offset) => dataBegin + offset)
      let ofHead = 0
      for (const range of ranges) {
        assert.ok(range && range !== 'unsatisfiable', 'every request for weights asks for a range')
        ofHead += Math.max(0, Math.min(range.last + 1, end) - Math.max(range.first, first))
      }
      assert.ok(ofHead < 2 * CHUNK, `${ofHead} bytes of the tied head were asked for, more than share chunks with other tensors`)
      const asked = ranges.reduce((sum, { first, last }) => sum + last - first + 1, 0)
      assert.ok(asked <= made.bytes - made.headBytes + 2 * CHUNK, 'nothing is asked for twice')
    })
  })
})
