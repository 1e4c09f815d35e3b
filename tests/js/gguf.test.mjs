// GGUF models under Node.js, wherever they lie: the logits and greedy ids of transformers on the decoded weights, in all modules.
import assert from 'node:assert/strict'
import { copyFileSync, readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { inspect, loadModel, loadTokenizer } from '../../dist/node.js'
import { ggufGoldens, root, worstDeviation } from '../support/golden.mjs'
import { startHostileServer } from '../support/hostile-server.mjs'
import { startHub } from '../support/hub.mjs'
import { nodeBest, nodeVariants } from '../support/variants.mjs'
import { readJson, temporaryFolder } from './support/models.mjs'

const folder = join(root, 'tests/golden/gguf')
const pathOf = (name) => join(folder, `${name}.gguf`)
const parts = readdirSync(folder).filter((name) => name.startsWith('qwen3-parts')).sort()
const { texts } = readJson('tests/golden/gguf/golden.json')

/** Checks a model against the goldens and ends it; returns its info. */
async function check(model, name) {
  for (const golden of ggufGoldens(name)) {
    const logits = await model.logits(golden.ids, { positions: golden.positions })
    const worst = worstDeviation(logits, golden.logits, golden.vocabSize)
    assert.ok(worst <= 1, `${name} ${golden.name}: the worst logit is ${worst} tolerances away`)
    const { ids } = await model.generate(golden.ids, { temperature: 0, maxTokens: golden.greedy.length }).result()
    assert.deepEqual(ids, golden.greedy, `${name} ${golden.name}`)
  }
  await model.dispose()
  return model.info
}

const GOLDENS = {
  'qwen3-f16': 'Qwen3ForCausalLM',
  'qwen3-q8_0': 'Qwen3ForCausalLM',
  'qwen3-q4_0': 'Qwen3ForCausalLM',
  'qwen3-untied-bf16-v2': 'Qwen3ForCausalLM',
  'qwen3-yarn-q4_0': 'Qwen3ForCausalLM',
  'qwen2-q8_0': 'Qwen2ForCausalLM',
  'llama3-rope-q8_0': 'LlamaForCausalLM',
  'smollm3-nope-q4_0': 'SmolLM3ForCausalLM',
}

describe('a GGUF file', () => {
  for (const [name, architecture] of Object.entries(GOLDENS)) {
    for (const variant of nodeVariants) {
      it(`${name} agrees with transformers in ${variant}`, async () => {
        const info = await check(await loadModel(pathOf(name), { dtype: 'exact', variant }), name)
        assert.deepEqual([info.variant, info.dtype, info.architecture], [variant, 'exact', architecture])
      })
    }
  }

  it('keeps what it stores unless something else is asked', async () => {
    const info = async (options) => {
      const model = await loadModel(pathOf('qwen3-q8_0'), options)
      await model.dispose()
      return model.info
    }
    const { dtype, storedDtypes, source } = await info()
    assert.deepEqual([dtype, storedDtypes], ['stored', ['F32', 'Q8_0']])
    assert.ok(source.endsWith('qwen3-q8_0.gguf'))
    assert.equal((await info({ dtype: 'q4' })).dtype, 'q4')
  })

  it('has a tokenizer, templates and end tokens of its own', async () => {
    const tokenizer = await loadTokenizer(pathOf('qwen3-q4_0'))
    for (const { text, ids } of texts) {
      assert.deepEqual(await tokenizer.tokenize(text), ids, text)
      assert.equal(await tokenizer.detokenize(ids), text.normalize('NFC'), text)
    }
    const chat = await tokenizer.renderChat([{ role: 'user', content: 'hi' }])
    assert.equal(chat, '<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n')
    await tokenizer.dispose()
    const model = await loadModel(pathOf('qwen3-q4_0'))
    assert.deepEqual(model.info.chatTemplates.sort(), ['default', 'shout'])
    assert.deepEqual(model.info.eosTokenIds, [342])
    await model.dispose()
  })

  it('can be inspected without its weights being read', async () => {
    const report = await inspect(pathOf('qwen3-q4_0'))
    const original = await inspect(join(root, 'tests/golden/models/qwen3'))
    assert.deepEqual(report.parameters, original.parameters)
    assert.deepEqual(report.attention, original.attention)
    assert.deepEqual(report.stored.dtypes, ['F32', 'Q4_0'])
  })

  it('that is missing or none is an error with its name', async () => {
    await assert.rejects(loadModel(join(folder, 'none.gguf')), { code: 'missing', message: /none\.gguf/ })
    const wrong = join(temporaryFolder(), 'wrong.gguf')
    copyFileSync(join(folder, 'golden.json'), wrong)
    await assert.rejects(loadModel(wrong), { code: 'invalid_file', message: /wrong\.gguf: expected a GGUF file/ })
  })
})

describe('a GGUF model in parts', () => {
  it('loads from any of them', async () => {
    for (const part of parts) await check(await loadModel(join(folder, part), { dtype: 'exact' }), 'qwen3-parts-q8_0')
  })

  it('is an error that names the part that is missing', async () => {
    const two = temporaryFolder()
    for (const part of parts.slice(1)) copyFileSync(join(folder, part), join(two, part))
    await assert.rejects(loadModel(join(two, parts[1])), (error) => error.code === 'missing' && error.message.includes(parts[0]))
  })
})

describe('a folder with GGUF files alone', () => {
  it('is the model, if there is one', async () => {
    const only = temporaryFolder()
    for (const part of parts) copyFileSync(join(folder, part), join(only, part))
    await check(await loadModel(only, { dtype: 'exact' }), 'qwen3-parts-q8_0')
  })

  it('is an error that lists them, if there are several', async () => {
    const several = temporaryFolder()
    for (const file of [...parts, 'qwen3-f16.gguf']) copyFileSync(join(folder, file), join(several, file))
    const message = /several GGUF models.*'qwen3-f16\.gguf', 'qwen3-parts-q8_0-00001-of-00003\.gguf'/
    await assert.rejects(loadModel(several), { code: 'invalid_argument', message })
  })
})

describe('GGUF files that were given', () => {
  const given = (name) => new File([readFileSync(join(folder, name))], name)

  it('are a model', async () => {
    await check(await loadModel(given('qwen3-q8_0.gguf'), { dtype: 'exact' }), 'qwen3-q8_0')
    await check(await loadModel(parts.map(given), { dtype: 'exact' }), 'qwen3-parts-q8_0')
  })

  it('of which one part is missing are an error', async () => {
    await assert.rejects(loadModel(given(parts[0])), { code: 'missing', message: /00002-of-00003/ })
  })
})

describe('a GGUF file behind a URL', () => {
  let server, hub
  before(async () => {
    process.env.XDG_CACHE_HOME = temporaryFolder()
    process.env.HF_HOME = temporaryFolder()
    server = await startHostileServer(folder)
    hub = await startHub({ 'Owner/gguf': { main: folder } })
  })
  after(() => Promise.all([server.close(), hub.close()]))

  it('is kept, and not fetched again', async () => {
    await check(await loadModel(`${server.url}qwen3-q8_0.gguf`, { dtype: 'exact' }), 'qwen3-q8_0')
    assert.ok(server.sent >= readFileSync(pathOf('qwen3-q8_0')).length)
    const { sent } = server
    await check(await loadModel(`${server.url}qwen3-q8_0.gguf`, { dtype: 'exact' }), 'qwen3-q8_0')
    assert.ok(server.sent <= sent + 1, 'but for the byte that tells whether the file is the same')
  })

  it('of a hub goes by the id and the file’s name', async () => {
    await check(await loadModel('Owner/gguf/qwen3-q4_0.gguf', { dtype: 'exact', endpoint: hub.endpoint }), 'qwen3-q4_0')
    await check(await loadModel(`Owner/gguf/${parts[1]}`, { dtype: 'exact', endpoint: hub.endpoint }), 'qwen3-parts-q8_0')
  })

  it('is named by the error where a repository has nothing else', async () => {
    const listed = /'Owner\/gguf\/qwen3-f16\.gguf', 'Owner\/gguf\/qwen3-parts-q8_0-00001-of-00003\.gguf', 'Owner\/gguf\/qwen3-q4_0\.gguf'/
    await assert.rejects(loadModel('Owner/gguf', { endpoint: hub.endpoint }), { code: 'missing', message: listed })
  })

  it('that answers with something else is an error that says what', async () => {
    server.behave = () => ({ status: 200, headers: {}, body: '<!doctype html><p>Sign in' })
    await assert.rejects(loadModel(`${server.url}x.gguf`, { cache: 'no-store' }), { code: 'http', message: /an HTML page/ })
    server.behave = () => undefined
    await assert.rejects(loadModel(`${server.url}absent.gguf`), { code: 'missing', message: /absent\.gguf/ })
  })
})

it('runs with several threads', async () => {
  const model = await loadModel(pathOf('qwen3-q8_0'), { dtype: 'exact', variant: nodeBest, threads: 2 })
  assert.equal((await check(model, 'qwen3-q8_0')).threads, 2)
})
