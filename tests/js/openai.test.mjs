// OpenAI's interface to a model, with the demo model behind it.
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { loadModel } from '../../dist/node.js'
import { createOpenAI, OpenAIError } from '../../dist/openai.js'
import { demo, endlessDemo } from './support/models.mjs'

const hello = [{ role: 'user', content: 'Hello!' }]
const weather = {
  type: 'function',
  function: {
    name: 'get_weather',
    description: 'Get the weather of a city.',
    parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  },
}

let model, openai
const endlessFolder = endlessDemo()
const usages = []
const collect = async (stream) => {
  const chunks = []
  for await (const chunk of stream) chunks.push(chunk)
  return chunks
}
const question = [{ role: 'user', content: 'What is 47 + 85?' }]
const story = [{ role: 'user', content: 'Tell me a story.' }]

before(async () => {
  model = await loadModel(demo, { dtype: 'exact' })
  openai = createOpenAI(model, { onUsage: (usage) => usages.push(usage) })
})
after(() => model?.dispose())

describe('a model behind OpenAI’s interface', () => {
  it('answers as the model itself does', async () => {
    const own = await model.chat(question, { temperature: 0, thinking: true }).result()
    const { model: name, choices, usage } = await openai.chat.completions.create({ messages: question, temperature: 0, reasoning_effort: 'low' })
    assert.equal(name, 'demo')
    assert.match(choices[0].message.content, /132/)
    assert.deepEqual([choices[0].message.content, choices[0].message.reasoning_content], [own.content, own.reasoning])
    assert.deepEqual([usage.prompt_tokens, usage.completion_tokens], [own.promptIds.length, own.ids.length])
    assert.deepEqual(usages.at(-1), usage)
  })

  it('streams the same', async () => {
    const params = { messages: question, temperature: 0, enable_thinking: true }
    const whole = await openai.chat.completions.create(params)
    const chunks = await collect(await openai.chat.completions.create({ ...params, stream: true, stream_options: { include_usage: true } }))
    const join = (field) => chunks.map(({ choices }) => choices[0]?.delta[field] ?? '').join('')
    const { message, finish_reason } = whole.choices[0]
    assert.deepEqual([join('content'), join('reasoning_content')], [message.content, message.reasoning_content])
    assert.equal(chunks.at(-2).choices[0].finish_reason, finish_reason)
    assert.equal(chunks.at(-1).usage.total_tokens, whole.usage.total_tokens)
  })

  it('gives n answers, each as if asked alone with its seed', async () => {
    const params = { messages: story, temperature: 1.5, max_tokens: 20, enable_thinking: false }
    const { choices, usage } = await openai.chat.completions.create({ ...params, n: 2, seed: 7 })
    const alone = await Promise.all([7, 8].map((seed) => openai.chat.completions.create({ ...params, seed })))
    assert.deepEqual(choices.map(({ message }) => message), alone.map((one) => one.choices[0].message))
    assert.notEqual(choices[0].message.content, choices[1].message.content)
    assert.equal(usage.completion_tokens, 40)
    const chunks = await collect(await openai.chat.completions.create({ ...params, n: 2, seed: 7, stream: true }))
    for (const { index, message } of choices) {
      const own = chunks.flatMap(({ choices: [choice] }) => (choice.index === index ? [choice] : []))
      assert.equal(own.map(({ delta }) => delta.content ?? '').join(''), message.content)
      assert.equal(own.at(-1).finish_reason, 'length')
    }
  })

  it('ends at stop texts', async () => {
    const params = { messages: question, temperature: 0, chat_template_kwargs: { enable_thinking: false } }
    const { content } = (await openai.chat.completions.create(params)).choices[0].message
    const stopped = await openai.chat.completions.create({ ...params, stop: [content.slice(3, 5)] })
    assert.equal(stopped.choices[0].message.content, content.slice(0, 3))
    assert.equal(stopped.choices[0].finish_reason, 'stop')
  })

  it('goes on from texts', async () => {
    const prompt = ['Once upon a time', await model.tokenize('Once')]
    const { choices, usage } = await openai.completions.create({ prompt, temperature: 0, n: 2, max_tokens: 5 })
    const own = await Promise.all(prompt.map((one) => model.generate(one, { temperature: 0, maxTokens: 5 }).result()))
    assert.deepEqual(choices.map(({ text }) => text), [own[0].text, own[0].text, own[1].text, own[1].text])
    assert.deepEqual(choices.map(({ index, finish_reason }) => [index, finish_reason]), [0, 1, 2, 3].map((i) => [i, 'length']))
    assert.equal(usage.prompt_tokens, own[0].promptIds.length + own[1].promptIds.length)
    const stream = await openai.completions.create({ prompt: prompt[0], temperature: 0, max_tokens: 5, stream: true })
    assert.equal((await collect(stream)).map((chunk) => chunk.choices[0].text).join(''), own[0].text)
  })

  it('names its one model, and refuses others', async () => {
    const { data } = await openai.models.list()
    assert.deepEqual(data.map(({ id, object }) => [id, object]), [['demo', 'model']])
    assert.equal((await openai.models.retrieve('demo')).id, 'demo')
    const refused = { name: 'OpenAIError', status: 404, code: 'model_not_found', message: /'gpt-4'.*'demo'/ }
    await assert.rejects(openai.models.retrieve('gpt-4'), refused)
    await assert.rejects(openai.chat.completions.create({ model: 'gpt-4', messages: hello }), refused)
    assert.equal((await createOpenAI(model, { name: 'gpt-4' }).chat.completions.create({ model: 'gpt-4', messages: hello, max_tokens: 1 })).model, 'gpt-4')
  })

  it('tells the model’s failures in OpenAI’s form, before a stream begins', async () => {
    for (const stream of [false, true]) {
      const tooLong = openai.completions.create({ prompt: Array(5000).fill(1), stream })
      await assert.rejects(tooLong, (error) => {
        assert.ok(error instanceof OpenAIError)
        assert.deepEqual([error.status, error.code, error.cause.code], [400, 'context_length_exceeded', 'context_overflow'])
        assert.deepEqual(error.body(), { error: { message: error.message, type: 'invalid_request_error', param: null, code: error.code } })
        return true
      })
    }
    await assert.rejects(openai.chat.completions.create({ messages: [] }), { status: 400, code: 'invalid_argument', message: /empty/ })
  })

  it('ends an answer that nobody wants any more, and is ready for the next', async () => {
    const endless = await loadModel(endlessFolder, { dtype: 'exact' })
    const usages = []
    const openai = createOpenAI(endless, { onUsage: (usage) => usages.push(usage) })
    const long = { prompt: 'Once', temperature: 2, seed: 1, max_tokens: 2000 } // takes seconds
    const signal = AbortSignal.timeout(20)
    await assert.rejects(openai.completions.create(long, { signal }), { name: 'AbortError' })
    await assert.rejects(openai.completions.create(long, { signal }), { name: 'AbortError' })

    const aborted = await openai.completions.create({ ...long, stream: true })
    let count = 0
    for await (const _ of aborted) if (++count === 3) aborted.controller.abort()
    assert.ok(count < 100, `${count} chunks came`)

    for await (const _ of await openai.completions.create({ ...long, stream: true })) break
    const next = await openai.completions.create({ prompt: 'Once', temperature: 0, max_tokens: 2 })
    assert.equal(next.usage.completion_tokens, 2)
    // What those answers took is known too.
    assert.equal(usages.length, 5)
    for (const { completion_tokens } of usages) assert.ok(completion_tokens < 200, `${completion_tokens} tokens`)
    await endless.dispose()
  })
})

describe('penalties, biases and log-probabilities behind OpenAI’s interface', () => {
  it('come from the model', async () => {
    const params = { messages: question, temperature: 0, enable_thinking: false, logprobs: true, top_logprobs: 2 }
    const { message, logprobs } = (await openai.chat.completions.create(params)).choices[0]
    assert.equal(Buffer.from(logprobs.content.flatMap(({ bytes }) => bytes)).toString(), message.content)
    for (const { logprob, top_logprobs } of logprobs.content) {
      assert.equal(top_logprobs.length, 2)
      assert.ok(logprob <= 0 && logprob === top_logprobs[0].logprob) // greedy: the likeliest token
    }
    const chunks = await collect(await openai.chat.completions.create({ ...params, stream: true }))
    assert.deepEqual(chunks.at(-1).choices[0].logprobs, logprobs)
    const { choices } = await openai.completions.create({ prompt: 'Once', temperature: 0, max_tokens: 3, logprobs: 1 })
    assert.equal(choices[0].logprobs.tokens.join(''), choices[0].text)
  })

  it('change the answer', async () => {
    const params = { prompt: 'Once', temperature: 0, max_tokens: 8 }
    const [first] = (await model.generate('Once', { temperature: 0, maxTokens: 1 }).result()).ids
    const text = async (more) => (await openai.completions.create({ ...params, ...more })).choices[0].text
    assert.notEqual(await text({ logit_bias: { [first]: -100 } }), await text({}))
    assert.notEqual(await text({ frequency_penalty: 2, presence_penalty: 2, max_tokens: 80 }), await text({ max_tokens: 80 }))
  })
})

describe('formats behind OpenAI’s interface', () => {
  it('give an answer that is valid', async () => {
    const schema = { type: 'object', properties: { sum: { type: 'integer' } }, required: ['sum'], additionalProperties: false }
    const response_format = { type: 'json_schema', json_schema: { name: 'sum', schema, strict: true } }
    const { choices } = await openai.chat.completions.create({ messages: question, temperature: 0, response_format, max_tokens: 100 })
    assert.deepEqual(Object.keys(JSON.parse(choices[0].message.content)), ['sum'])
  })

  it('that are not supported are refused with the keyword’s name', async () => {
    const response_format = { type: 'json_schema', json_schema: { name: 'x', schema: { type: 'array', contains: { type: 'integer' } } } }
    await assert.rejects(openai.chat.completions.create({ messages: question, response_format }), { status: 400, code: 'unsupported', message: /contains/ })
  })
})

describe('tools behind OpenAI’s interface', () => {
  const params = { messages: [{ role: 'user', content: 'What is the weather in Paris?' }], tools: [weather], temperature: 0 }

  it('are called', async () => {
    const { message, finish_reason } = (await openai.chat.completions.create(params)).choices[0]
    assert.deepEqual([finish_reason, message.content, message.tool_calls.length], ['tool_calls', null, 1])
    const [call] = message.tool_calls
    assert.deepEqual([call.type, call.function.name, JSON.parse(call.function.arguments)], ['function', 'get_weather', { city: 'Paris' }])
    assert.match(call.id, /^call_/)
  })

  it('are called in a stream', async () => {
    const chunks = await collect(await openai.chat.completions.create({ ...params, stream: true }))
    const deltas = chunks.flatMap(({ choices }) => choices[0].delta.tool_calls ?? [])
    assert.deepEqual([deltas[0].type, deltas[0].function.name], ['function', 'get_weather'])
    assert.deepEqual(JSON.parse(deltas.map((delta) => delta.function.arguments).join('')), { city: 'Paris' })
    assert.equal(chunks.at(-1).choices[0].finish_reason, 'tool_calls')
  })
})
