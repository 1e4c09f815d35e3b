// `qwasm serve`: OpenAI's own client against it, what it refuses, how it counts, and how it ends.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect } from 'node:net'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import OpenAI from 'openai'
import { loadModel } from '../../dist/node.js'
import { root } from '../support/golden.mjs'
import { workerAfter } from './support/broken-parts.mjs'
import { demo, endlessDemo } from './support/models.mjs'
import { importSource } from './support/source.mjs'

const { ApiServer, DEFAULT_SETTINGS } = await importSource('server/server.ts')

let model, endless, client, address
const endlessFolder = endlessDemo()
const servers = []

/** A server of this process, at a free port; its base address, and its own stop(). */
async function serve(settings = {}, served = model) {
  const server = new ApiServer(served, { name: 'demo', ...DEFAULT_SETTINGS, port: 0, ...settings })
  const base = await server.listen()
  servers.push(server)
  return { base, origin: new URL(base).origin, stop: (graceMs) => server.stop(graceMs) }
}

const clientOf = (base, more) => new OpenAI({ baseURL: base, apiKey: 'none', maxRetries: 0, ...more })

before(async () => {
  model = await loadModel(demo, { dtype: 'exact' })
  endless = await loadModel(endlessFolder, { dtype: 'exact' })
  address = await serve()
  client = clientOf(address.base)
})
after(async () => {
  await Promise.all(servers.map((server) => server.stop(0)))
  await model?.dispose()
  await endless?.dispose()
})

const post = (origin, path, body, headers = {}) =>
  fetch(origin + path, { method: 'POST', headers: { 'Content-Type': 'application/json', ...headers }, body: typeof body === 'string' ? body : JSON.stringify(body) })

/** The values of the server's metrics by their names. */
async function metrics(origin) {
  const text = await (await fetch(`${origin}/metrics`)).text()
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  return Object.fromEntries(lines.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ') + 1))]))
}

/** Waits until the metrics are as `good` says. */
async function eventually(origin, good) {
  for (let tries = 0; ; tries++) {
    const found = await metrics(origin)
    if (good(found)) return found
    assert.ok(tries < 100, JSON.stringify(found))
    await sleep(20)
  }
}

const question = [{ role: 'user', content: 'What is 47 + 85?' }]
const sums = { model: 'demo', messages: question, temperature: 0, reasoning_effort: 'none' }
/** To the endless model: an answer of 2,000 tokens, which takes seconds. */
const long = { model: 'demo', prompt: 'Once', temperature: 2, seed: 1, max_tokens: 2000 }

describe('OpenAI’s own client', () => {
  it('chats', async () => {
    const { id, object, choices, usage } = await client.chat.completions.create({ ...sums, reasoning_effort: 'low' })
    assert.match(id, /^chatcmpl-/)
    assert.equal(object, 'chat.completion')
    assert.match(choices[0].message.content, /132/)
    assert.match(choices[0].message.reasoning_content, /7 \+ 5/)
    assert.equal(usage.total_tokens, usage.prompt_tokens + usage.completion_tokens)
  })

  it('streams', async () => {
    const whole = await client.chat.completions.create(sums)
    let content = ''
    let last
    const stream = await client.chat.completions.create({ ...sums, stream: true, stream_options: { include_usage: true } })
    for await (const chunk of stream) {
      content += chunk.choices[0]?.delta.content ?? ''
      last = chunk
    }
    assert.equal(content, whole.choices[0].message.content)
    assert.equal(last.usage.total_tokens, whole.usage.total_tokens)
    const final = await client.chat.completions.stream(sums).finalChatCompletion() // the client's own way of putting chunks together
    assert.deepEqual(final.choices[0].message.content, content)
  })

  it('gets n answers', async () => {
    const params = { ...sums, temperature: 1.5, max_tokens: 20, seed: 7, messages: [{ role: 'user', content: 'Tell me a story.' }] }
    const { choices } = await client.chat.completions.create({ ...params, n: 2 })
    const second = await client.chat.completions.create({ ...params, seed: 8 })
    assert.deepEqual(choices.map(({ index }) => index), [0, 1])
    assert.deepEqual(choices[1].message, second.choices[0].message)
    assert.notDeepEqual(choices[0].message, choices[1].message)
    const texts = ['', '']
    for await (const { choices: [choice] } of await client.chat.completions.create({ ...params, n: 2, stream: true })) {
      texts[choice.index] += choice.delta.content ?? ''
    }
    assert.deepEqual(texts, choices.map(({ message }) => message.content))
  })

  it('has its stop texts minded', async () => {
    const { content } = (await client.chat.completions.create(sums)).choices[0].message
    const { message, finish_reason } = (await client.chat.completions.create({ ...sums, stop: content.slice(3, 5) })).choices[0]
    assert.deepEqual([message.content, finish_reason], [content.slice(0, 3), 'stop'])
  })

  it('lists models and completes texts', async () => {
    assert.deepEqual((await client.models.list()).data.map(({ id }) => id), ['demo'])
    assert.equal((await client.models.retrieve('demo')).object, 'model')
    const { choices } = await client.completions.create({ model: 'demo', prompt: 'Once upon a time', temperature: 0, max_tokens: 3 })
    assert.equal(choices[0].text, (await model.generate('Once upon a time', { temperature: 0, maxTokens: 3 }).result()).text)
  })

  it('gets errors that it knows', async () => {
    const bad = client.chat.completions.create({ ...sums, temperature: 9 })
    await assert.rejects(bad, (error) => error instanceof OpenAI.BadRequestError && error.param === 'temperature' && /from 0 to 2/.test(error.message))
    await assert.rejects(client.chat.completions.create({ ...sums, model: 'gpt-4' }), (error) => error instanceof OpenAI.NotFoundError)
    const tooLong = client.completions.create({ model: 'demo', prompt: Array(5000).fill(1), stream: true })
    await assert.rejects(tooLong, { status: 400, code: 'context_length_exceeded' })
    const { base } = await serve({ apiKey: 'secret' })
    await assert.rejects(clientOf(base).models.list(), (error) => error instanceof OpenAI.AuthenticationError)
    assert.equal((await clientOf(base, { apiKey: 'secret' }).models.list()).data.length, 1)
  })

  it('stops the model by leaving', async () => {
    const { base, origin } = await serve({}, endless)
    const stream = await clientOf(base).completions.create({ ...long, stream: true })
    let seen = 0
    for await (const _ of stream) if (++seen === 5) stream.controller.abort()
    const { qwasm_generated_tokens_total: generated } = await eventually(origin, (m) => m.qwasm_requests_in_flight === 0 && m.qwasm_generated_tokens_total > 0)
    // The model generates a token in less time than the news of a closed connection takes: some are made meanwhile, of 2,000.
    assert.ok(generated < 200, `${generated} tokens`)

    await assert.rejects(clientOf(base).completions.create(long, { signal: AbortSignal.timeout(30) }))
    const found = await eventually(origin, (m) => m['qwasm_requests_total{route="completions",status="499"}'] === 2)
    assert.equal(found.qwasm_requests_in_flight, 0)
  })
})

describe('OpenAI’s own client, with log-probabilities', () => {
  it('gets them', async () => {
    const { message, logprobs } = (await client.chat.completions.create({ ...sums, logprobs: true, top_logprobs: 3 })).choices[0]
    assert.equal(logprobs.content.map(({ token }) => token).join(''), message.content)
    assert.ok(logprobs.content.every(({ logprob, top_logprobs }) => logprob <= 0 && top_logprobs.length === 3))
    const final = await client.chat.completions.stream({ ...sums, logprobs: true, top_logprobs: 3 }).finalChatCompletion()
    assert.deepEqual(final.choices[0].logprobs.content, logprobs.content)
  })
})

describe('OpenAI’s own client, with a schema', () => {
  it('gets an answer that it can parse', async () => {
    const schema = { type: 'object', properties: { sum: { type: 'integer' } }, required: ['sum'], additionalProperties: false }
    const response_format = { type: 'json_schema', json_schema: { name: 'sum', schema, strict: true } }
    const { choices } = await client.chat.completions.parse({ ...sums, response_format, max_tokens: 100 })
    assert.deepEqual(Object.keys(choices[0].message.parsed), ['sum'])
  })
})

describe('OpenAI’s own client, with tools', () => {
  const tool = (name, description, parameters, required) => ({
    type: 'function',
    function: { name, description, parameters: { type: 'object', properties: parameters, required } },
  })
  const integer = { type: 'integer' }
  const tools = [
    tool('get_weather', 'Get the weather of a city.', { city: { type: 'string' } }, ['city']),
    tool('add', 'Add two numbers.', { a: integer, b: integer }, ['a', 'b']),
  ]
  const carryOut = {
    get_weather: () => JSON.stringify({ weather: 'sunny', temperature: 21 }),
    add: ({ a, b }) => String(a + b),
  }

  /** Asks, carries out the calls, and tells the results, until there is an answer. */
  async function converse(content, ask) {
    const messages = [{ role: 'user', content }]
    const called = []
    for (let turns = 0; turns < 4; turns++) {
      const { message, finish_reason } = (await ask({ ...sums, messages, tools })).choices[0]
      if (finish_reason !== 'tool_calls') return { called, content: message.content }
      messages.push(message)
      for (const { id, function: { name, arguments: text } } of message.tool_calls) {
        called.push([name, JSON.parse(text)])
        messages.push({ role: 'tool', tool_call_id: id, content: carryOut[name](JSON.parse(text)) })
      }
    }
    throw new Error(`There were only calls: ${JSON.stringify(called)}`)
  }

  for (const [way, ask] of [
    ['at once', (params) => client.chat.completions.create(params)],
    ['in a stream', (params) => client.chat.completions.stream(params).finalChatCompletion()],
  ]) {
    it(`carries out calls and gets the answer, ${way}`, async () => {
      const weather = await converse('What is the weather in Paris?', ask)
      assert.deepEqual(weather.called, [['get_weather', { city: 'Paris' }]])
      assert.match(weather.content, /sunny in Paris, 21/)
      const sum = await converse('What is 47 + 35?', ask)
      assert.deepEqual(sum.called, [['add', { a: 47, b: 35 }]])
      assert.match(sum.content, /82/)
    })
  }

  it('can forbid calls and ask for one', async () => {
    const params = { ...sums, messages: [{ role: 'user', content: 'What is the weather in Paris?' }], tools }
    const none = (await client.chat.completions.create({ ...params, tool_choice: 'none' })).choices[0]
    assert.equal(none.message.tool_calls, undefined)
    const tool_choice = { type: 'function', function: { name: 'add' } }
    const named = (await client.chat.completions.create({ ...params, tool_choice, max_tokens: 200 })).choices[0]
    assert.equal(named.message.tool_calls[0].function.name, 'add')
  })
})

describe('the server', () => {
  it('tells events of a stream in their form, and the end of it', async () => {
    const response = await post(address.origin, '/v1/completions', { prompt: 'Once', temperature: 0, max_tokens: 2, stream: true })
    assert.match(response.headers.get('content-type'), /^text\/event-stream/)
    const events = (await response.text()).split('\n\n')
    assert.deepEqual(events.slice(-2), ['data: [DONE]', ''])
    for (const event of events.slice(0, -2)) assert.equal(JSON.parse(event.replace(/^data: /, '')).object, 'text_completion')
  })

  it('says that it is well', async () => {
    assert.deepEqual(await (await fetch(`${address.origin}/health`)).json(), { status: 'ok' })
  })

  it('says that it is not well when its model died', async () => {
    const exit = "const { parentPort } = await import('node:worker_threads'); parentPort.on('message', ({ method }) => method === 'generate' && process.exit(1))"
    const { origin } = await serve({}, await loadModel(demo, { workerUrl: workerAfter('', exit) }))
    const answer = await post(origin, '/v1/completions', { prompt: 'Once' })
    assert.deepEqual([answer.status, (await answer.json()).error.code], [503, 'dead'])
    const health = await fetch(`${origin}/health`)
    assert.deepEqual([health.status, await health.json()], [503, { status: 'dead' }])
  })

  const refused = {
    'an unknown address': [['/v1/images', {}], 404, /no such address/],
    'a wrong method': [['/v1/models', {}], 405, /GET only/],
    'a body of another type': [['/v1/completions', '{}', { 'Content-Type': 'text/plain' }], 415, /application\/json/],
    'what is no JSON': [['/v1/completions', '{'], 400, /not valid JSON/],
    'JSON that is no request': [['/v1/completions', '[1]'], 400, /object of parameters/],
    'a foreign name, as after DNS rebinding': [['/v1/completions', {}, { Host: 'evil.example' }], 403, /'evil.example'/],
  }
  for (const [name, [[path, body, headers], status, message]] of Object.entries(refused)) {
    it(`refuses ${name}`, async () => {
      const response = headers?.Host ? await postAs(headers.Host, path) : await post(address.origin, path, body, headers)
      const { error } = await response.json()
      assert.equal(response.status, status)
      assert.match(error.message, message)
      assert.deepEqual(Object.keys(error), ['message', 'type', 'param', 'code'])
    })
  }

  /** A request under another name; fetch would not send it. */
  async function postAs(host, path) {
    const text = await raw(`POST ${path} HTTP/1.1\r\nHost: ${host}\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}`)
    return { status: Number(text.split(' ')[1]), json: () => JSON.parse(text.slice(text.indexOf('{'))) }
  }

  /** Sends bytes, and gives all that comes back. */
  async function raw(bytes, { origin } = address) {
    const socket = connect(Number(new URL(origin).port), '127.0.0.1')
    let text = ''
    socket.on('data', (data) => (text += data))
    socket.on('error', () => {})
    socket.write(bytes)
    await once(socket, 'close')
    return text
  }

  it('takes bodies of some size only, whether or not they tell it', async () => {
    const { origin } = await serve({ bodyLimit: 1000 })
    const large = JSON.stringify({ prompt: 'x'.repeat(2000) })
    assert.equal((await post(origin, '/v1/completions', large)).status, 413)
    const chunk = `7d0\r\n${'x'.repeat(2000)}\r\n`
    const head = 'POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n'
    assert.match(await raw(`${head}${chunk}0\r\n\r\n`, { origin }), /^HTTP\/1.1 413 /)
    assert.equal((await post(origin, '/v1/completions', { prompt: 'x', max_tokens: 1 })).status, 200)
  })

  it('hangs up on who is slow to tell what he wants', async () => {
    const { origin } = await serve({ bodyTimeoutMs: 200 })
    const slow = 'POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 10\r\n\r\n{'
    assert.match(await raw(slow, { origin }), /^HTTP\/1.1 408 /)
  })

  it('lets some run, some wait, and tells the others when to come again', async () => {
    const { origin } = await serve({ maxParallel: 1, maxQueue: 1 }, endless)
    const leave = new AbortController()
    const ask = (signal) => fetch(`${origin}/v1/completions`, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(long), signal })
    const first = ask(leave.signal)
    await eventually(origin, (m) => m.qwasm_requests_in_flight === 1)
    const second = ask(leave.signal)
    await eventually(origin, (m) => m.qwasm_requests_queued === 1)
    const third = await ask()
    assert.equal(third.status, 429)
    assert.ok(Number(third.headers.get('retry-after')) >= 1)
    assert.equal((await third.json()).error.code, 'rate_limit_exceeded')
    leave.abort()
    await assert.rejects(first)
    await assert.rejects(second)
    await eventually(origin, (m) => m.qwasm_requests_in_flight === 0 && m.qwasm_requests_queued === 0)
    assert.equal((await post(origin, '/v1/completions', { prompt: 'x', max_tokens: 1 })).status, 200)
  })

  it('lets pages of other origins in only where it was told to', async () => {
    const question = { method: 'OPTIONS', headers: { Origin: 'https://a.example', 'Access-Control-Request-Method': 'POST', 'Access-Control-Request-Headers': 'authorization,x-stainless-lang' } }
    const closed = await fetch(`${address.origin}/v1/completions`, question)
    assert.deepEqual([closed.status, closed.headers.get('access-control-allow-origin')], [405, null])
    const { origin } = await serve({ cors: 'https://a.example', apiKey: 'secret' })
    const open = await fetch(`${origin}/v1/completions`, question)
    assert.equal(open.status, 204)
    assert.equal(open.headers.get('access-control-allow-origin'), 'https://a.example')
    assert.equal(open.headers.get('access-control-allow-headers'), 'authorization,x-stainless-lang')
    const other = await fetch(`${origin}/v1/models`, { headers: { Origin: 'https://b.example', Authorization: 'Bearer secret' } })
    assert.deepEqual([other.status, other.headers.get('access-control-allow-origin')], [200, null])
  })

  it('asks for its key everywhere but at its health', async () => {
    const { origin } = await serve({ apiKey: 'secret' })
    const status = async (path, key) => (await fetch(origin + path, key ? { headers: { Authorization: `Bearer ${key}` } } : {})).status
    assert.deepEqual([await status('/health'), await status('/metrics'), await status('/v1/models'), await status('/v1/models', 'secre')], [200, 401, 401, 401])
    assert.deepEqual([await status('/metrics', 'secret'), await status('/v1/models/demo', 'secret')], [200, 200])
  })

  it('counts', async () => {
    const { origin } = await serve()
    const { usage } = await (await post(origin, '/v1/completions', { prompt: 'Once', max_tokens: 3 })).json()
    await post(origin, '/v1/completions', { prompt: 'Once', max_tokens: 0 })
    const found = await eventually(origin, (m) => m['qwasm_request_seconds_count{route="completions"}'] === 2)
    assert.equal(found['qwasm_requests_total{route="completions",status="200"}'], 1)
    assert.equal(found['qwasm_requests_total{route="completions",status="400"}'], 1)
    assert.deepEqual([found.qwasm_prompt_tokens_total, found.qwasm_generated_tokens_total], [usage.prompt_tokens, 3])
    assert.ok(found['qwasm_request_seconds_sum{route="completions"}'] > 0)
  })

  it('stops when what runs has ended, and cuts off what takes too long', async () => {
    const patient = await serve({}, endless)
    const short = post(patient.origin, '/v1/completions', { ...long, max_tokens: 1500 })
    await eventually(patient.origin, (m) => m.qwasm_requests_in_flight === 1)
    await patient.stop(30_000)
    assert.equal((await (await short).json()).usage.completion_tokens, 1500)
    await assert.rejects(fetch(`${patient.origin}/health`))

    const hasty = await serve({}, endless)
    const cut = await post(hasty.origin, '/v1/completions', { ...long, stream: true })
    await hasty.stop(10)
    const events = (await cut.text()).trim().split('\n\n')
    assert.match(JSON.parse(events.at(-1).slice(6)).error.message, /stopping/)
  })
})

describe('qwasm serve', () => {
  /** Starts the command; resolves when it answers, or ends. */
  async function start(...args) {
    const child = spawn(process.execPath, [join(root, 'dist/cli.js'), 'serve', ...args], { stdio: ['ignore', 'pipe', 'pipe'], timeout: 30_000 })
    const out = { text: '' }
    child.stdout.on('data', (data) => (out.text += data))
    child.stderr.on('data', (data) => (out.text += data))
    const ended = once(child, 'close').then(([code]) => code)
    while (!/answers/.test(out.text) && child.exitCode === null) await Promise.race([once(child.stderr, 'data'), ended])
    return { child, out, ended, base: /http:\S+/.exec(out.text)?.[0] }
  }

  it('serves until a signal, and prints neither prompts nor keys', async () => {
    const { child, out, ended, base } = await start('--port', '0', '--api-key', 'a-secret', '--max-parallel', '2')
    assert.match(base, /^http:\/\/127\.0\.0\.1:\d+\/v1$/)
    const { choices } = await clientOf(base, { apiKey: 'a-secret' }).chat.completions.create({ ...sums, reasoning_effort: 'low' })
    assert.match(choices[0].message.content, /132/)
    child.kill('SIGTERM')
    assert.equal(await ended, 0)
    assert.doesNotMatch(out.text, /a-secret|What is|= 132/)
  })

  it('warns where everybody could use it, and cuts off at a second signal', async () => {
    const { child, out, ended, base } = await start('--port', '0', '--host', '0.0.0.0', '--model', endlessFolder, '--name', 'demo')
    assert.match(out.text, /Warning: .*--api-key/)
    const stream = await clientOf(base.replace('0.0.0.0', '127.0.0.1')).completions.create({ ...long, stream: true })
    const read = (async () => {
      for await (const _ of stream) await sleep(1)
    })()
    child.kill('SIGINT')
    await eventuallyText(out, /Stopping/)
    child.kill('SIGINT')
    await assert.rejects(read)
    assert.equal(await ended, 0)
  })

  async function eventuallyText(out, pattern) {
    for (let tries = 0; !pattern.test(out.text); tries++) {
      assert.ok(tries < 500, out.text)
      await sleep(10)
    }
  }

  const misuse = {
    'a port that is taken': [() => ['--port', new URL(address.origin).port], /cannot listen.*EADDRINUSE/],
    'a port that is none': [() => ['--port', '99999'], /--port .*99999/],
    'an origin with a path': [() => ['--cors', 'https://a.example/x'], /--cors/],
    'an option of another command': [() => ['--temperature', '1'], /--temperature is no option of serve/],
  }
  for (const [name, [args, message]] of Object.entries(misuse)) {
    it(`says in one sentence what is wrong with ${name}`, async () => {
      const { out, ended } = await start(...args())
      assert.equal(await ended, 2)
      assert.match(out.text, message)
      assert.match(out.text, /^qwasm: [^\n]+\n$/)
    })
  }
})
