// Models written as GGUF files: their bytes are those that the gguf package for Python read, and a file is there whole or not at all.
import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { loadModel } from '../../dist/node.js'
import { readGguf } from '../support/gguf.mjs'
import { root } from '../support/golden.mjs'
import { readTensors } from '../support/safetensors.mjs'
import { nodeVariants } from '../support/variants.mjs'
import { demo, readJson } from './support/models.mjs'

const cli = join(root, 'dist/cli.js')
const golden = readJson('tests/golden/demo-gguf.json')
const sha256 = data => createHash('sha256').update(data).digest('hex')
const bytesOf = array => new Uint8Array(array.buffer, array.byteOffset, array.byteLength)

let folder
before(() => (folder = mkdtempSync(join(tmpdir(), 'qwasm-gguf-'))))
after(() => rmSync(folder, { recursive: true }))

/** A new folder for the files of one test. */
function emptyFolder() {
  return mkdtempSync(join(folder, 'test-'))
}

/** Runs `qwasm quantize`; `within` wraps the command line. */
function quantize(args, { within = command => command, signalAfter } = {}) {
  const [program, ...rest] = within([process.execPath, cli, 'quantize', ...args])
  const child = spawn(program, rest, { stdio: ['ignore', 'pipe', 'pipe'], timeout: 60_000 })
  const out = { stdout: '', stderr: '' }
  child.stdout.on('data', data => (out.stdout += data))
  child.stderr.on('data', data => (out.stderr += data))
  signalAfter?.(child)
  return new Promise(resolve => child.on('close', code => resolve({ ...out, code })))
}

/** What saveGguf gives, in memory. */
async function savedBytes(model, options) {
  const pieces = []
  const bytes = await model.saveGguf(new WritableStream({ write: piece => void pieces.push(piece) }), options)
  const file = new Uint8Array(Buffer.concat(pieces))
  assert.equal(file.length, bytes)
  return file
}

describe('qwasm quantize', () => {
  for (const [dtype, type] of [['q8', 'Q8_0'], ['q4', 'Q4_0'], ['f16', 'F16']]) {
    it(`writes the ${dtype} file that gguf for Python ${golden.gguf} read`, async () => {
      const path = join(emptyFolder(), 'demo.gguf')
      const expected = golden.files[dtype]
      const { code, stdout, stderr } = await quantize([demo, path, '--dtype', dtype, '--json'])
      assert.equal(code, 0, stderr)
      assert.deepEqual(JSON.parse(stdout), { path, bytes: expected.bytes })
      assert.equal(sha256(readFileSync(path)), expected.sha256)
      const { version, keys, tensors } = readGguf(path)
      assert.equal(version, 3)
      assert.deepEqual(Object.keys(keys), Object.keys(expected.keys))
      assert.deepEqual(Object.keys(tensors), Object.keys(expected.tensors))
      for (const [name, { type: found, shape, values, offset }] of Object.entries(tensors)) {
        assert.equal(offset % 32, 0, name)
        assert.equal(found, shape.length === 1 ? 'F32' : type, name)
        assert.deepEqual({ type: found, shape, sha256: sha256(bytesOf(values())) }, expected.tensors[name], name)
      }
    })
  }

  it('tells shapes, tokenizer and chat template under the names that llama.cpp reads', () => {
    const config = readJson('models/demo/config.json'), settings = readJson('models/demo/tokenizer_config.json')
    const { keys } = golden.files.q8
    const expected = {
      'general.architecture': 'qwen3', 'general.name': 'demo', 'general.file_type': 7, 'general.quantization_version': 2,
      'qwen3.block_count': config.num_hidden_layers, 'qwen3.context_length': config.max_position_embeddings,
      'qwen3.embedding_length': config.hidden_size, 'qwen3.feed_forward_length': config.intermediate_size,
      'qwen3.attention.head_count': config.num_attention_heads, 'qwen3.attention.head_count_kv': config.num_key_value_heads,
      'qwen3.attention.key_length': config.head_dim, 'qwen3.attention.value_length': config.head_dim,
      'qwen3.rope.freq_base': 1e6, 'qwen3.attention.layer_norm_rms_epsilon': Math.fround(1e-6),
      'tokenizer.ggml.model': 'gpt2', 'tokenizer.ggml.pre': 'qwen2', 'tokenizer.ggml.eos_token_id': 2018, 'tokenizer.ggml.bos_token_id': 2016,
      'tokenizer.ggml.add_bos_token': false, 'tokenizer.chat_template': settings.chat_template,
    }
    for (const [name, value] of Object.entries(expected)) assert.deepEqual(keys[name]?.value, value, name)
    assert.equal(keys['tokenizer.ggml.tokens'].count, config.vocab_size)
    assert.deepEqual([golden.files.q4.keys['general.file_type'].value, golden.files.f16.keys['general.file_type'].value], [2, 1])
  })

  it('takes float16 from the stored weights, and q8 and q4 near them', async () => {
    const stored = readTensors(join(demo, 'model.safetensors'))
    const name = 'model.layers.1.mlp.gate_proj.weight'
    const { data } = stored.get(name)
    const spread = Math.sqrt(data.reduce((sum, value) => sum + value * value, 0) / data.length)
    // Float16 has 3 more bits than the stored bfloat16, so that all but the smallest values are kept.
    for (const [dtype, most] of [['exact', 1e-7], ['q8', 0.01], ['q4', 0.12]]) {
      const model = await loadModel(demo, { dtype, threads: 1 })
      const values = readGguf(await savedBytes(model)).tensors['blk.1.ffn_gate.weight'].values()
      const error = Math.sqrt(values.reduce((sum, value, i) => sum + (value - data[i]) ** 2, 0) / data.length)
      assert.ok(error <= most * spread, `${dtype}: ${error / spread}`)
      await model.dispose()
    }
  })

  it('refuses a file that is there, unless --force replaces it', async () => {
    const place = emptyFolder(), path = join(place, 'demo.gguf')
    writeFileSync(path, 'mine')
    const refused = await quantize([demo, path, '--dtype', 'q4'])
    assert.equal(refused.code, 1)
    assert.match(refused.stderr, /demo\.gguf is there already; --force replaces it/)
    assert.equal(readFileSync(path, 'utf8'), 'mine')
    const { code, stderr } = await quantize([demo, path, '--dtype', 'q4', '--force'])
    assert.equal(code, 0, stderr)
    assert.equal(sha256(readFileSync(path)), golden.files.q4.sha256)
    assert.deepEqual(readdirSync(place), ['demo.gguf'])
  })

  it('says why a place cannot be written, before it loads anything', async () => {
    const place = emptyFolder()
    mkdirSync(join(place, 'folder.gguf'))
    for (const [path, why] of [
      [join(place, 'no-folder/demo.gguf'), /no-folder\/demo\.gguf cannot be written: ENOENT/],
      [join(place, 'folder.gguf'), /folder\.gguf is there already, and is no file/],
      ['/sys/demo.gguf', /\/sys\/demo\.gguf cannot be written: (EACCES|EPERM|EROFS)/],
    ]) {
      const { code, stderr } = await quantize(['no/such/model', path, '--force'])
      assert.equal(code, 1)
      assert.match(stderr, why)
    }
  })

  it('leaves nothing where the disk is full', async () => {
    const place = emptyFolder()
    // The shell allows files of 1 MiB; to a program a full disk looks the same but for the error's number.
    const within = command => ['sh', '-c', 'ulimit -f 2048 && exec "$@"', 'sh', ...command]
    const { code, stderr } = await quantize([demo, join(place, 'demo.gguf')], { within })
    assert.equal(code, 1)
    assert.match(stderr, /The GGUF file could not be written: EFBIG/)
    assert.deepEqual(readdirSync(place), [])
  })

  it('leaves nothing where the model cannot be loaded, or a signal ends it', async () => {
    const place = emptyFolder(), path = join(place, 'demo.gguf')
    const missing = await quantize([join(place, 'no-model'), path])
    assert.equal(missing.code, 1)
    assert.deepEqual(readdirSync(place), [])
    const asSoonAsItWrites = child => {
      const timer = setInterval(() => readdirSync(place).length > 0 && child.kill('SIGINT'), 1)
      child.on('close', () => clearInterval(timer))
    }
    const { code, stderr } = await quantize([demo, path], { signalAfter: asSoonAsItWrites })
    assert.equal(code, 130)
    assert.match(stderr, /stopped; nothing was written/)
    assert.deepEqual(readdirSync(place), [])
  })

  it('refuses other dtypes and a missing file by name', async () => {
    const path = join(emptyFolder(), 'demo.gguf')
    assert.match((await quantize([demo, path, '--dtype', 'exact'])).stderr, /--dtype must be q8, q4, f16 for quantize, not 'exact'/)
    const { code, stderr } = await quantize([demo])
    assert.equal(code, 2)
    assert.match(stderr, /The file to write is missing/)
  })

  it('refuses weights that float16 cannot hold by the name of their tensor', async () => {
    const place = emptyFolder(), model = join(place, 'model')
    execFileSync('cp', ['-r', join(root, 'tests/golden/models/qwen3-sharded-f32'), model])
    const file = readdirSync(model).find(name => name.endsWith('.safetensors') && readTensors(join(model, name)).has('model.layers.0.mlp.up_proj.weight'))
    overwriteFirst(join(model, file), 'model.layers.0.mlp.up_proj.weight', 1e5)
    const { code, stderr } = await quantize([model, join(place, 'out.gguf'), '--dtype', 'f16'])
    assert.equal(code, 1)
    assert.match(stderr, /model\.layers\.0\.mlp\.up_proj\.weight.*65504.*100000/)
    assert.deepEqual(readdirSync(place), ['model'])
  })
})

/** Changes the first value of an F32 tensor in a file. */
function overwriteFirst(path, tensor, value) {
  const file = readFileSync(path)
  const headerEnd = 8 + Number(file.readBigUInt64LE(0))
  const { data_offsets: [begin] } = JSON.parse(file.subarray(8, headerEnd).toString())[tensor]
  file.writeFloatLE(value, headerEnd + begin)
  writeFileSync(path, file)
}

describe('saveGguf', () => {
  it('gives the same bytes in every module, with progress to the end', async () => {
    for (const variant of nodeVariants) {
      const model = await loadModel(demo, { dtype: 'q4', variant })
      const told = []
      const file = await savedBytes(model, { name: 'demo', onProgress: progress => told.push(progress) })
      assert.equal(sha256(file), golden.files.q4.sha256, variant)
      assert.deepEqual(told[0], { written: 0, total: file.length })
      assert.deepEqual(told.at(-1), { written: file.length, total: file.length })
      assert.ok(told.every(({ written }, i) => i === 0 || written > told[i - 1].written))
      await model.dispose()
    }
  })

  it('waits for a slow stream, and lets the model answer meanwhile', async () => {
    const model = await loadModel(demo, { dtype: 'q8' })
    let written = 0, taken = 0, ahead = 0, largest = 0
    const slow = new WritableStream({
      write: async piece => {
        await new Promise(resolve => setTimeout(resolve, 5))
        ahead = Math.max(ahead, written - taken)
        largest = Math.max(largest, piece.length)
        taken += piece.length
      },
    })
    const saving = model.saveGguf(slow, { onProgress: progress => (written = progress.written) })
    const { content } = await model.chat([{ role: 'user', content: 'What is 47 + 85?' }], { temperature: 0 }).result()
    assert.equal(content, '47 + 85 = 132')
    assert.equal(await saving, taken)
    assert.ok(ahead <= 3 * largest && 4 * largest < taken, `${ahead} of ${taken} bytes were made before they could be written`)
    await model.dispose()
  })

  it('aborts the stream where the signal, the stream or the model ends it', async () => {
    const model = await loadModel(demo, { dtype: 'q8' })
    const aborted = []
    const sink = (write = () => {}) => new WritableStream({ write, abort: reason => void aborted.push(reason) })
    const controller = new AbortController()
    await assert.rejects(model.saveGguf(sink(() => controller.abort()), { signal: controller.signal }), { name: 'AbortError' })
    assert.equal(aborted.length, 1)
    const full = Object.assign(new Error('no space left on device'), { code: 'ENOSPC' })
    await assert.rejects(model.saveGguf(sink(() => Promise.reject(full))), { code: 'io', message: /no space left on device/, cause: full })
    await assert.rejects(model.saveGguf(sink(() => model.dispose())), { code: 'disposed' })
    assert.equal(aborted.length, 2)
  })

  it('refuses what is no stream, and options that do not exist', async () => {
    const model = await loadModel(demo, { dtype: 'q8' })
    const locked = new WritableStream()
    locked.getWriter()
    for (const sink of [undefined, 'demo.gguf', locked]) await assert.rejects(model.saveGguf(sink), { code: 'invalid_argument', message: /WritableStream/ })
    await assert.rejects(model.saveGguf(new WritableStream(), { dtype: 'q4' }), { code: 'invalid_argument', message: /no option 'dtype'/ })
    await model.dispose()
  })
})
