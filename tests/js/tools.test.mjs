// Tool calls: taken out of streamed text however it is cut, in both forms, and carried through a whole conversation with the demo model.
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { loadModel } from '../../dist/node.js'
import { demo, readJson, temporaryFolder } from './support/models.mjs'
import { importSource } from './support/source.mjs'

const { ChatAnswer, chooseTools } = await importSource('chat/answer.ts', 'chat/tools.ts')

const tool = (name, properties = {}, required = Object.keys(properties)) => ({
  type: 'function',
  function: { name, description: `Does ${name}.`, parameters: { type: 'object', properties, required } },
})
const TOOLS = [
  tool('get_weather', { city: { type: 'string' } }),
  tool('add', { a: { type: 'integer' }, b: { type: 'integer' } }),
  tool('get_time'),
  tool('write', {
    path: { type: 'string' },
    lines: { type: 'array', items: { type: 'string' } },
    mode: { type: ['integer', 'null'] },
    force: { type: 'boolean' },
    ratio: { anyOf: [{ type: 'number' }, { type: 'string' }] },
    level: { enum: [1, 2, 'high'] },
    extra: { $ref: '#/$defs/extra' },
  }),
]
const { callable } = chooseTools({ tools: TOOLS })

/** A random number generator of fixed course, so that cuts are the same in each run. */
function* randoms(seed) {
  for (let state = seed; ; yield state / 2 ** 32) state = (Math.imul(state, 1664525) + 1013904223) >>> 0
}
const random = randoms(1)

/** The whole, each character, two pieces at every place, and 20 random cuts. */
function* cuts(text) {
  yield [text]
  yield [...text]
  for (let at = 1; at < text.length; at++) yield [text.slice(0, at), text.slice(at)]
  for (let i = 0; i < 20; i++) yield text.match(new RegExp(`[^]{1,${1 + Math.floor(random.next().value * 12)}}`, 'g')) ?? ['']
}

/** Feeds pieces and gives what came out, with ids replaced by numbers and neighbouring pieces of text joined. */
function take(pieces, { thinking = false, reason = 'stop', tools = callable } = {}) {
  const answer = new ChatAnswer(thinking, tools)
  const events = []
  for (const delta of [...pieces.flatMap((piece) => answer.push(piece)), ...answer.end()]) {
    assert.equal(Object.keys(delta).length, 1)
    const [[kind, value]] = Object.entries(delta)
    if (kind !== 'toolCalls') {
      assert.notEqual(value, '')
      if (events.at(-1)?.[kind] !== undefined) events.at(-1)[kind] += value
      else events.push({ [kind]: value })
    } else {
      assert.equal(value.length, 1)
      events.push(value[0])
    }
  }
  const result = answer.result(reason)
  check(events, result)
  return { ...result, events, toolCalls: result.toolCalls.map(({ function: { name, arguments: text } }) => [name, text]) }
}

/** The events and the result tell the same. */
function check(events, { content, reasoning, toolCalls }) {
  const join = (kind) => events.map((event) => event[kind] ?? '').join('')
  assert.equal(join('content'), content)
  assert.equal(join('reasoning'), reasoning)
  const ids = toolCalls.map(({ id }) => id)
  assert.equal(new Set(ids).size, ids.length)
  toolCalls.forEach((call, index) => {
    assert.match(call.id, /^call_[\w-]{24}$/)
    assert.equal(call.type, 'function')
    const [first, ...rest] = events.filter((event) => event.id === call.id)
    assert.deepEqual(first, { index, id: call.id, name: call.function.name })
    assert.ok(rest.every((event) => event.index === index && event.name === undefined))
    const text = rest.map((event) => event.arguments).join('')
    assert.equal(text, call.function.arguments)
    assert.equal(typeof JSON.parse(text), 'object')
  })
}

/** The same whatever the cuts. */
function parse(text, options) {
  let first
  for (const pieces of cuts(text)) {
    const { events, ...result } = take(pieces, options)
    const kinds = events.map(({ id: _, ...event }) => event)
    first ??= { ...result, kinds }
    assert.deepEqual({ ...result, kinds }, first, JSON.stringify(pieces))
  }
  return first
}

const json = (body) => `<tool_call>\n${body}\n</tool_call>`
const parameter = ([key, value]) => `<parameter=${key}>\n${value}\n</parameter>\n`
const xml = (name, parameters) => `<tool_call>\n<function=${name}>\n${parameters.map(parameter).join('')}</function>\n</tool_call>`
const weather = json('{"name": "get_weather", "arguments": {"city": "Rome"}}')
const rome = ['get_weather', '{"city": "Rome"}']

describe('a call in JSON', () => {
  const cases = [
    ['alone', weather, [rome], ''],
    ['after text', `I will look.\n${weather}`, [rome], 'I will look.'],
    ['between texts', `Look:\n\n${weather}\n\nDone.`, [rome], 'Look:\n\nDone.'],
    ['before text', `${weather}\nDone.\n`, [rome], 'Done.'],
    ['twice', `${weather}\n${json('{"name": "add", "arguments": {"a": 1, "b": 2}}')}`, [rome, ['add', '{"a": 1, "b": 2}']], ''],
    ['without line breaks', `<tool_call>{"name":"add","arguments":{"a":1,"b":2}}</tool_call>`, [['add', '{"a":1,"b":2}']], ''],
    ...[
      ['with the closing tag in a string', '{"city": "</tool_call>"}'],
      ['with an opening tag, quotes and braces in a string', '{"city": "<tool_call>\\"}{\\\\"}'],
      ['with a number that JavaScript would round', '{"city": 12345678901234567890, "b": 1.0}'],
      ['with characters outside ASCII', '{"city": "東京 🫠"}'],
    ].map(([name, args]) => [name, json(`{"name": "get_weather", "arguments": ${args}}`), [['get_weather', args]], '']),
    [
      'with the arguments first and a member of their name inside',
      json('{"arguments": {"city": {"arguments": [{"name": ","}]}}, "name": "get_weather"}'),
      [['get_weather', '{"city": {"arguments": [{"name": ","}]}}']],
      '',
    ],
    ['without arguments', json('{"name": "get_time"}'), [['get_time', '{}']], ''],
    ['that lacks its closing tag at the end', weather.replace('\n</tool_call>', ''), [rome], ''],
    ['that lacks its closing tag before another', `${weather.replace('\n</tool_call>', '')}\n${weather}`, [rome, rome], ''],
  ]
  for (const [name, text, calls, content] of cases) {
    it(`is taken out: ${name}`, () => {
      const result = parse(text)
      assert.deepEqual(result.toolCalls, calls)
      assert.equal(result.content, content)
      assert.deepEqual(result.warnings, [])
      assert.equal(result.finishReason, 'tool_calls')
    })
  }
})

describe('a call in XML', () => {
  const call = (parameters) => parse(xml('write', parameters)).toolCalls.map(([name, text]) => [name, JSON.parse(text)])
  it('has values of the types that the schema names', () => {
    const parameters = [
      ['path', '42'],
      ['lines', '["a", "b"]'],
      ['mode', '7'],
      ['force', 'True'],
      ['ratio', '0.5'],
      ['level', '2'],
      ['extra', '{"deep": [null]}'],
      ['unknown', '[1]'],
    ]
    const typed = { path: '42', lines: ['a', 'b'], mode: 7, force: true, ratio: 0.5, level: 2, extra: { deep: [null] }, unknown: '[1]' }
    assert.deepEqual(call(parameters), [['write', typed]])
  })
  it('has strings where a value is of no such type', () => {
    const parameters = [
      ['lines', 'a, b'],
      ['mode', '1.5'],
      ['force', 'maybe'],
      ['ratio', 'half'],
      ['level', 'high'],
    ]
    assert.deepEqual(call(parameters), [['write', Object.fromEntries(parameters)]])
    assert.deepEqual(call([['mode', 'None']]), [['write', { mode: null }]])
  })
  it('keeps line breaks, quotes and tags of values', () => {
    const values = ['', '\n', 'a\n\n  b\n', '"quoted"', '</tool_call>', '<tool_call>\n<function=x>', 'a </parameter> b']
    for (const value of values) assert.deepEqual(call([['path', value]]), [['write', { path: value }]], JSON.stringify(value))
  })
  it('may have no parameters, come with text and come twice', () => {
    const result = parse(`Two:\n${xml('get_time', [])}\n${xml('add', [['a', '1'], ['b', '-2']])}`)
    assert.deepEqual(result.toolCalls, [['get_time', '{}'], ['add', '{"a": 1, "b": -2}']])
    assert.equal(result.content, 'Two:')
    assert.equal(result.finishReason, 'tool_calls')
  })
})

describe('a malformed call', () => {
  const cases = [
    ['of broken JSON', json('{"name": "add", "arguments": {"a": 1'), /no JSON object/],
    ['of a string that never ends', json('{"name": "add, "arguments": {"a": "1}}'), /no JSON object/],
    ['without a name', json('{"arguments": {}}'), /no name/],
    ['with arguments that are no object', json('{"name": "add", "arguments": "1 2"}'), /arguments are no object: '1 2'/],
    ['of an unknown tool', json('{"name": "rm", "arguments": {}}'), /no tool 'rm'; the tools are get_weather, add/],
    ['of no JSON at all', '<tool_call>\nadd(1, 2)\n</tool_call>', /follows the tag/],
    ['of XML that does not fit together', '<tool_call>\n<function=add>\n<parameter=a>\n1\n</function>\n</tool_call>', /fit together/],
    ['that is cut off', 'Hm.\n\n<tool_call>\n{"name": "add", "argu', /no JSON object/],
    ['that is only a tag', 'The tag <tool_call> begins a call.', /follows the tag/],
  ]
  for (const [name, text, warning] of cases) {
    it(`${name} stays text, with a warning`, () => {
      const result = parse(text)
      assert.equal(result.content, text)
      assert.deepEqual(result.toolCalls, [])
      assert.equal(result.warnings.length, 1)
      assert.match(result.warnings[0], warning)
      assert.equal(result.finishReason, 'stop')
    })
  }

  it('does not keep a good one from being seen', () => {
    const bad = json('{"name": "add", "arguments": {')
    const result = parse(`${bad}\n${weather}`)
    assert.deepEqual(result.toolCalls, [rome])
    assert.equal(result.content, bad)
    assert.equal(result.warnings.length, 1)
  })

  it('of many parameters that never end is refused in time that grows with its length', () => {
    const started = performance.now()
    const parameters = '<parameter=a>\n1\n</parameter>\n'.repeat(5000)
    const { warnings } = take([`<tool_call>\n<function=add>\n${parameters}<parameter=b>\n</function>\n</tool_call>`])
    assert.match(warnings[0], /fit together/)
    assert.ok(performance.now() - started < 2000)
  })
})

describe('an answer with tools', () => {
  it('shows text as soon as it is sure', () => {
    const answer = new ChatAnswer(false, callable)
    assert.deepEqual(answer.push('I see '), [{ content: 'I see' }])
    assert.deepEqual(answer.push('it.\n<tool'), [{ content: ' it.' }])
    assert.deepEqual(answer.push('box>'), [{ content: '\n<toolbox>' }])
    assert.deepEqual(answer.push('<tool_call>{"name": "get_time"}'), [])
    assert.equal(answer.push('</tool_call>').length, 2)
  })
  it('keeps its white space where there is no call', () => assert.equal(parse('\nHi \n\n').content, '\nHi \n\n'))
  it('looks for calls behind the thinking alone', () => {
    const result = parse(`<think>\nMaybe ${weather}?\n</think>\n\n${weather}`)
    assert.equal(result.reasoning, `Maybe ${weather}?`)
    assert.deepEqual(result.toolCalls, [rome])
  })
  it('that was cut off says so, whatever it calls', () => {
    for (const reason of ['length', 'abort']) assert.equal(parse(weather, { reason }).finishReason, reason)
  })
  it('without tools has no calls', () => {
    const { content, toolCalls, warnings, finishReason } = parse(weather, { tools: new Map() })
    assert.deepEqual([content, toolCalls, warnings, finishReason], [weather, [], [], 'stop'])
  })
})

describe('tools', () => {
  const refused = (options, message) => assert.throws(() => chooseTools(options), { code: 'invalid_argument', message })
  it('that are wrong are refused by place and kind', () => {
    refused({ tools: [tool('a'), { type: 'function' }] }, /tools\[1\].*name/)
    refused({ tools: [tool('a'), tool('a')] }, /tools\[1\].*'a'/)
    refused({ tools: [{ name: 'a', parameters: 'none' }] }, /tools\[0\]: parameters.*'none'/)
    refused({ toolChoice: 'required' }, /no tools/)
    refused({ tools: TOOLS, toolChoice: { name: 'rm' } }, /'rm'; the tools are get_weather/)
  })
  it('are not shown where none may be called', () => {
    const { shown, callable } = chooseTools({ tools: TOOLS, toolChoice: 'none' })
    assert.deepEqual(shown, [])
    assert.equal(callable.size, 0)
  })
})

describe('a conversation with tools', () => {
  // As the demo model learnt them.
  const city = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] }
  const numbers = { type: 'object', properties: { a: { type: 'integer' }, b: { type: 'integer' } }, required: ['a', 'b'] }
  const tools = [
    { type: 'function', function: { name: 'get_weather', description: 'Get the weather of a city.', parameters: city } },
    { type: 'function', function: { name: 'add', description: 'Add two numbers.', parameters: numbers } },
  ]
  const run = {
    get_weather: ({ city }) => JSON.stringify({ weather: 'sunny', temperature: city.length }),
    add: ({ a, b }) => String(a + b),
  }
  let model
  before(async () => (model = await loadModel(demo, { dtype: 'exact' })))
  after(() => model.dispose())

  /** Asks, runs the calls, feeds their results back, until there is an answer without calls. */
  async function converse(question, options) {
    const messages = [{ role: 'user', content: question }]
    let before = []
    for (;;) {
      const stream = model.chat(messages, { temperature: 0, tools, ...options })
      const seen = []
      for await (const { toolCalls } of stream) seen.push(...(toolCalls ?? []))
      const { content, reasoning, toolCalls, finishReason, warnings, promptIds, ids } = await stream.result()
      assert.deepEqual(warnings, [])
      if (options.thinking) assert.deepEqual(promptIds.slice(0, before.length), before, 'the prompt goes on from the last answer')
      before = [...promptIds, ...ids]
      assert.equal(finishReason, toolCalls.length > 0 ? 'tool_calls' : 'stop')
      assert.deepEqual(seen.map((delta) => delta.id), toolCalls.flatMap(({ id }) => [id, id]))
      messages.push({ role: 'assistant', content, reasoning_content: reasoning, tool_calls: toolCalls })
      if (toolCalls.length === 0) return messages
      for (const { id, function: call } of toolCalls) {
        messages.push({ role: 'tool', tool_call_id: id, content: run[call.name](JSON.parse(call.arguments)) })
      }
    }
  }

  for (const thinking of [true, false]) {
    it(`calls, hears the results and answers, ${thinking ? 'with' : 'without'} thinking`, async () => {
      const weather = await converse('What is the weather in Paris?', { thinking })
      assert.deepEqual(weather[1].tool_calls[0].function, { name: 'get_weather', arguments: '{"city": "Paris"}' })
      assert.match(weather.at(-1).content, /sunny in Paris, 5 degrees/)
      const sum = await converse('What is 47 + 85?', { thinking })
      assert.deepEqual(sum[1].tool_calls[0].function, { name: 'add', arguments: '{"a": 47, "b": 85}' })
      assert.match(sum.at(-1).content, /132/)
    })
  }

  // At a high temperature, so that nothing but the grammar makes these calls.
  const short = { type: 'object', properties: { city: { type: 'string', maxLength: 12 } }, required: ['city'] }
  const boundTools = [{ type: 'function', function: { name: 'get_weather', parameters: short } }, tools[1]]
  const story = [{ role: 'user', content: 'Tell me a story.' }]
  const bound = (options) => model.chat(story, { tools: boundTools, temperature: 1.5, ...options }).result()

  for (const thinking of [true, false]) {
    it(`is a call where one is required, ${thinking ? 'with' : 'without'} thinking`, async () => {
      for (let seed = 0; seed < 15; seed++) {
        const options = { toolChoice: 'required', thinking, thinkingBudget: 10, seed }
        const { toolCalls, content, finishReason, warnings, reasoning } = await bound(options)
        assert.deepEqual([toolCalls.length, content, finishReason, warnings], [1, '', 'tool_calls', []])
        assert.equal(reasoning !== '', thinking)
        const [{ function: call }] = toolCalls
        const args = JSON.parse(call.arguments)
        assert.deepEqual(Object.keys(args), call.name === 'add' ? ['a', 'b'] : ['city'])
        assert.ok(Object.values(args).every((value) => (call.name === 'add' ? Number.isInteger(value) : typeof value === 'string')))
      }
    })
  }

  it('is a call in XML where the template writes such', async () => {
    const folder = temporaryFolder(demo)
    const { chat_template: template } = readJson('models/demo/tokenizer_config.json')
    writeFileSync(join(folder, 'chat_template.jinja'), `{#- <function= -#}\n${template}`)
    const properties = {
      text: { type: 'string', maxLength: 12 },
      count: { type: 'integer', minimum: 1, maximum: 99 },
      mode: { enum: ['fast', 'slow'] },
      flags: { type: 'array', items: { type: 'boolean' }, maxItems: 3 },
      more: { $ref: '#/$defs/more' },
    }
    const $defs = { more: { type: 'object', properties: { a: { type: 'null' } }, required: ['a'] } }
    const parameters = { type: 'object', properties, required: ['text', 'count', 'mode'], $defs }
    const coder = await loadModel(folder, { dtype: 'exact' })
    const options = { tools: [{ type: 'function', function: { name: 'run', parameters } }], toolChoice: 'required', thinking: false }
    for (let seed = 0; seed < 10; seed++) {
      const result = await coder.chat(story, { ...options, temperature: 1.5, seed }).result()
      assert.deepEqual([result.toolCalls.length, result.content, result.warnings], [1, '', []])
      assert.match(result.text, /^<tool_call>\n<function=run>\n<parameter=text>\n/)
      const { text, count, mode, flags = [], more = { a: null } } = JSON.parse(result.toolCalls[0].function.arguments)
      assert.equal(typeof text, 'string')
      assert.ok(Number.isInteger(count) && count >= 1 && count <= 99)
      assert.ok(['fast', 'slow'].includes(mode))
      assert.ok(flags.length <= 3 && flags.every((flag) => typeof flag === 'boolean'))
      assert.deepEqual(more, { a: null })
    }
    const dated = { type: 'object', properties: { day: { type: 'string', format: 'date' } } }
    const odd = coder.chat(story, { ...options, tools: [{ type: 'function', function: { name: 'odd', parameters: dated } }] })
    await assert.rejects(odd.result(), { code: 'unsupported', message: /odd: day: format/ })
    await coder.dispose()
  })

  it('is a call of the tool that is named', async () => {
    for (const name of ['add', 'get_weather']) {
      const { toolCalls, ids } = await bound({ toolChoice: { name }, thinking: false, temperature: 0 })
      assert.equal(toolCalls[0].function.name, name)
      assert.equal(ids[0], (await model.tokenize('<tool_call>'))[0])
    }
  })

  it('where a call is required and cannot be is refused before anything runs', async () => {
    await assert.rejects(bound({ tools: [], toolChoice: 'required' }), { code: 'invalid_argument', message: /no tools/ })
    await assert.rejects(bound({ toolChoice: { name: 'rm' } }), { code: 'invalid_argument', message: /'rm'/ })
    await assert.rejects(bound({ toolChoice: 'always' }), { code: 'invalid_argument', message: /toolChoice/ })
    const odd = [{ type: 'function', function: { name: 'odd', parameters: { type: 'object', properties: { x: { not: {} } } } } }]
    await assert.rejects(bound({ tools: odd, toolChoice: 'required' }), { code: 'unsupported', message: /odd.*not/ })
  })

  it('where no tool may be called is one without tools', async () => {
    const messages = [{ role: 'user', content: 'What is 47 + 85?' }]
    const none = await model.chat(messages, { temperature: 0, tools, toolChoice: 'none' }).result()
    assert.deepEqual(none.promptIds, await model.encodeChat(messages))
    assert.deepEqual(none.toolCalls, [])
    assert.match(none.content, /132/)
  })
})
