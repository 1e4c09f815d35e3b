// OpenAI's embeddings: in the package, and behind `qwasm serve` with OpenAI's own client.
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import OpenAI from 'openai'
import { loadModel } from '../../dist/node.js'
import { createOpenAI, OpenAIError } from '../../dist/openai.js'
import { embeddingModel } from './support/embedding-model.mjs'
import { importSource } from './support/source.mjs'

const { ApiServer, DEFAULT_SETTINGS } = await importSource('server/server.ts')
const input = ['Once upon a time', 'The capital of France']
const usages = []
let model, openai, server, client

before(async () => {
  model = await loadModel(embeddingModel(), { dtype: 'exact' })
  openai = createOpenAI(model, { name: 'demo', onUsage: (usage) => usages.push(usage) })
  server = new ApiServer(model, { ...DEFAULT_SETTINGS, name: 'demo', port: 0 })
  client = new OpenAI({ baseURL: await server.listen(), apiKey: 'none', maxRetries: 0 })
})
after(async () => {
  await server?.stop(0)
  await model?.dispose()
})

const vectors = ({ data }) => data.map(({ embedding }) => Float32Array.from(embedding))
const own = async (texts, options) => (await model.embed(texts, options)).embeddings

describe('embeddings behind OpenAI’s interface', () => {
  it('are the model’s own', async () => {
    const made = await openai.embeddings.create({ model: 'demo', input })
    assert.deepEqual(vectors(made), await own(input))
    assert.deepEqual([made.object, made.model, made.data.map(({ object, index }) => [object, index])], ['list', 'demo', [['embedding', 0], ['embedding', 1]]])
    const { tokens } = await model.embed(input)
    assert.deepEqual(made.usage, { prompt_tokens: tokens, total_tokens: tokens })
    assert.deepEqual(usages.at(-1), { prompt_tokens: tokens, completion_tokens: 0, total_tokens: tokens, prompt_tokens_details: { cached_tokens: 0 } })
  })

  it('come of a text, of several, of token ids, and of several such', async () => {
    const ids = await model.tokenize(input[0])
    for (const [given, texts] of [
      [input[0], [input[0]]],
      [input, input],
      [ids, [ids]],
      [[ids, [7]], [ids, [7]]],
    ]) assert.deepEqual(vectors(await openai.embeddings.create({ input: given })), await own(texts))
  })

  it('have as many dimensions as are asked for', async () => {
    assert.deepEqual(vectors(await openai.embeddings.create({ input, dimensions: 16 })), await own(input, { dimensions: 16 }))
  })

  it('come as numbers, or as the bytes of float32 in base64', async () => {
    const [first] = await own([input[0]])
    const { data } = await openai.embeddings.create({ input: input[0], encoding_format: 'base64' })
    assert.equal(data[0].embedding, Buffer.from(first.buffer).toString('base64'))
    assert.ok(Array.isArray((await openai.embeddings.create({ input: input[0], encoding_format: 'float' })).data[0].embedding))
  })

  it('are refused in OpenAI’s form', async () => {
    for (const [params, expected] of [
      [{ input, model: 'gpt' }, { status: 404, code: 'model_not_found' }],
      [{}, { status: 400, param: 'input' }],
      [{ input: [] }, { status: 400, param: 'input' }],
      [{ input: [1.5] }, { status: 400, param: 'input' }],
      [{ input: '' }, { status: 400, code: 'invalid_argument', message: /texts\[0\]/ }],
      [{ input, dimensions: 0 }, { status: 400, param: 'dimensions' }],
      [{ input, dimensions: 1000 }, { status: 400, message: /from 1 to 256/ }],
      [{ input, encoding_format: 'int8' }, { status: 400, param: 'encoding_format' }],
      [{ input, stream: true }, { status: 400, param: 'stream', code: 'unknown_parameter' }],
      [{ input: ['a', Array(3000).fill(1)] }, { status: 400, code: 'context_length_exceeded', message: /texts\[1\] has 3000 tokens/ }],
    ]) await assert.rejects(openai.embeddings.create(params), (error) => (assert.ok(error instanceof OpenAIError), assert.throws(() => { throw error }, expected), true))
  })

  it('can be aborted', async () => {
    await assert.rejects(openai.embeddings.create({ input }, { signal: AbortSignal.abort() }), { name: 'AbortError' })
  })
})

describe('OpenAI’s own client', () => {
  it('gets embeddings, which it asks for in base64, as numbers', async () => {
    const made = await client.embeddings.create({ model: 'demo', input, dimensions: 32 })
    assert.deepEqual(vectors(made), await own(input, { dimensions: 32 }))
    assert.ok(Array.isArray(made.data[0].embedding))
    assert.ok(made.usage.prompt_tokens > 0)
  })

  it('gets them as numbers where it asks for that', async () => {
    assert.deepEqual(vectors(await client.embeddings.create({ model: 'demo', input, encoding_format: 'float' })), await own(input))
  })

  it('hears what is wrong', async () => {
    await assert.rejects(client.embeddings.create({ model: 'demo', input: '' }), { status: 400, message: /texts\[0\]/ })
    await assert.rejects(client.embeddings.create({ model: 'other', input }), { status: 404, code: 'model_not_found' })
  })

  it('is counted', async () => {
    const text = await (await fetch(`${new URL(client.baseURL).origin}/metrics`)).text()
    assert.match(text, /qwasm_requests_total\{route="embeddings",status="200"\} 2/)
    assert.match(text, /qwasm_prompt_tokens_total [1-9]/)
  })
})
