// OpenAI's requests in our options, and our answers in its shapes: the mapping alone, without a model.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { root } from '../support/golden.mjs'
import { temporaryFolder } from './support/models.mjs'
import { importSource } from './support/source.mjs'

const { chatJob, completionJob, sampleOptions, chatFormat, completionFormat, usageOf } = await importSource('openai/request.ts', 'openai/formats.ts')

const hello = [{ role: 'user', content: 'Hello!' }]
const weather = {
  type: 'function',
  function: {
    name: 'get_weather',
    description: 'Get the weather of a city.',
    parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  },
}
const optionsOf = (more) => chatJob({ messages: hello, ...more }).options

describe('a request for a chat', () => {
  it('says in our options what it says in OpenAI’s parameters', () => {
    const { options } = chatJob({
      messages: hello,
      max_completion_tokens: 7,
      temperature: 0.5,
      top_p: 0.9,
      presence_penalty: 1,
      frequency_penalty: -1,
      logit_bias: { 17: -100 },
      seed: 3,
      stop: ['a', 'b'],
      logprobs: true,
      top_logprobs: 2,
    })
    assert.deepEqual(options, {
      maxTokens: 7,
      temperature: 0.5,
      topP: 0.9,
      presencePenalty: 1,
      frequencyPenalty: -1,
      logitBias: { 17: -100 },
      seed: 3,
      stop: ['a', 'b'],
      logprobs: 2,
    })
  })

  it('leaves to the model’s own defaults what it does not say, or says as null', () => {
    const job = chatJob({ messages: hello, temperature: null, n: null, stop: null, tools: undefined })
    const plain = { model: undefined, messages: hello, oneCall: false, options: {}, samples: 1, stream: false, includeUsage: false }
    assert.deepEqual(job, plain)
  })

  it('ignores what changes no answer', () => {
    const harmless = { user: 'u', store: true, metadata: { a: 'b' }, service_tier: 'auto', safety_identifier: 's', prompt_cache_key: 'k' }
    assert.deepEqual(optionsOf({ ...harmless, parallel_tool_calls: true, modalities: ['text'], response_format: { type: 'text' } }), {})
  })

  it('knows the words of vLLM and Qwen for what OpenAI has none', () => {
    assert.deepEqual(optionsOf({ top_k: 5, min_p: 0.1, repetition_penalty: 1.1 }), { topK: 5, minP: 0.1, repetitionPenalty: 1.1 })
    assert.deepEqual(optionsOf({ enable_thinking: true, thinking_budget: 9 }), { thinking: true, thinkingBudget: 9 })
    const kwargs = { enable_thinking: false, greeting: 'hi' }
    assert.deepEqual(optionsOf({ chat_template_kwargs: kwargs }), { thinking: false, templateVariables: { greeting: 'hi' } })
    assert.deepEqual([optionsOf({ reasoning_effort: 'none' }), optionsOf({ reasoning_effort: 'low' })], [{ thinking: false }, { thinking: true }])
  })

  it('hands on formats and tools', () => {
    const schema = { type: 'object' }
    const format = (response_format) => optionsOf({ response_format }).responseFormat
    assert.deepEqual(format({ type: 'json_schema', json_schema: { name: 'x', strict: true, schema } }), { type: 'json_schema', schema })
    assert.deepEqual(format({ type: 'json_object' }), { type: 'json_object' })
    assert.deepEqual(format({ type: 'regex', pattern: 'a+' }), { type: 'regex', pattern: 'a+' })
    const tools = [weather]
    assert.deepEqual(optionsOf({ tools }), { tools })
    assert.deepEqual(optionsOf({ tools, tool_choice: 'required' }), { tools, toolChoice: 'required' })
    const named = { type: 'function', function: { name: 'get_weather' } }
    assert.deepEqual(optionsOf({ tools, tool_choice: named }), { tools, toolChoice: { name: 'get_weather' } })
    assert.deepEqual(optionsOf({ tools: [], tool_choice: 'auto' }), {})
  })

  it('keeps of messages what a template can use', () => {
    const call = { id: 'call_1', type: 'function', function: { name: 'get_weather', arguments: '{"city": "Rome"}' } }
    const { messages } = chatJob({
      messages: [
        { role: 'developer', content: 'Be brief.' },
        { role: 'user', content: [{ type: 'text', text: 'Hi' }], name: 'Ann' },
        { role: 'assistant', content: null, refusal: null, audio: null, annotations: [], tool_calls: [call] },
        { role: 'tool', content: 'sunny', tool_call_id: 'call_1' },
        { role: 'assistant', content: 'Sunny.', reasoning_content: 'hm', tool_calls: null },
      ],
    })
    assert.deepEqual(messages, [
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: [{ type: 'text', text: 'Hi' }], name: 'Ann' },
      { role: 'assistant', content: null, tool_calls: [call] },
      { role: 'tool', content: 'sunny', tool_call_id: 'call_1' },
      { role: 'assistant', content: 'Sunny.', reasoning_content: 'hm' },
    ])
  })

  it('for n answers asks n times, with seeds that follow each other', () => {
    const seeds = (job) => [0, 1, 2].map((i) => sampleOptions(job, i).seed)
    assert.deepEqual(seeds(chatJob({ messages: hello, n: 3, seed: 40 })), [40, 41, 42])
    assert.deepEqual(seeds(chatJob({ messages: hello, n: 3 })), [undefined, undefined, undefined])
  })

  const wrong = {
    'an unknown parameter': [{ frobnicate: 1 }, 'frobnicate', /frobnicate is not supported/],
    'one of the past': [{ functions: [] }, 'functions', /Use tools/],
    'a parameter of every object': [JSON.parse('{"__proto__": {}}'), '__proto__', /not supported/],
    'messages that are missing': [{ messages: null }, 'messages', /missing/],
    'messages that are none': [{ messages: ['hi'] }, 'messages', /messages\[0\] must be an object, not 'hi'/],
    'an unknown role': [{ messages: [{ role: 'function', content: 'x' }] }, 'messages', /messages\[0\].role .*'function'/],
    'a picture': [{ messages: [{ role: 'user', content: [{ type: 'image_url' }] }] }, 'messages', /content\[0\].*'image_url'.*text only/],
    'a temperature above 2': [{ temperature: 3 }, 'temperature', /from 0 to 2, not 3/],
    'a number as text': [{ top_p: '1' }, 'top_p', /not '1'/],
    'no answers': [{ n: 0 }, 'n', /from 1 to 128, not 0/],
    'half a token': [{ max_tokens: 1.5 }, 'max_tokens', /not 1.5/],
    'two maxima': [{ max_tokens: 1, max_completion_tokens: 2 }, 'max_tokens', /exclude/],
    'an empty stop text': [{ stop: ['a', ''] }, 'stop', /not empty/],
    'a bias of a word': [{ logit_bias: { hello: 1 } }, 'logit_bias', /token ids/],
    'alternatives without log-probabilities': [{ top_logprobs: 2 }, 'top_logprobs', /logprobs: true/],
    'too many alternatives': [{ logprobs: true, top_logprobs: 21 }, 'top_logprobs', /0 to 20, not 21/],
    'options of a stream that is none': [{ stream_options: { include_usage: true } }, 'stream_options', /stream: true/],
    'one that would change the answer': [{ verbosity: 'low' }, 'verbosity', /'medium'; nothing else is supported/],
    'sound': [{ modalities: ['text', 'audio'] }, 'modalities', /'text'/],
    'an unknown format': [{ response_format: { type: 'xml' } }, 'response_format', /not 'xml'/],
    'a schema that is missing': [{ response_format: { type: 'json_schema' } }, 'response_format', /schema must be an object, not undefined/],
    'a call without tools': [{ tool_choice: 'required' }, 'tool_choice', /no tools/],
    'a call of a tool that is not there': [{ tools: [weather], tool_choice: { type: 'function', function: { name: 'sing' } } }, 'tool_choice', /get_weather, not 'sing'/],
    'a tool of another kind': [{ tools: [{ type: 'custom', custom: { name: 'x' } }] }, 'tools', /tools\[0\].type .*'custom'/],
  }
  for (const [name, [more, param, message]] of Object.entries(wrong)) {
    it(`is refused, by the parameter’s name, for ${name}`, () => {
      assert.throws(() => optionsOf(more), (error) => {
        assert.deepEqual([error.name, error.status, error.type, error.param], ['OpenAIError', 400, 'invalid_request_error', param])
        assert.match(error.message, message)
        return true
      })
    })
  }
})

describe('a request for a completion', () => {
  it('takes texts and ids, one or several', () => {
    for (const [prompt, prompts] of [
      ['a', ['a']],
      [['a', 'b'], ['a', 'b']],
      [[1, 2], [[1, 2]]],
      [[[1], [2, 3]], [[1], [2, 3]]],
    ]) {
      assert.deepEqual(completionJob({ prompt }).prompts, prompts)
    }
    for (const prompt of [undefined, [], [[]], [1.5], {}]) assert.throws(() => completionJob({ prompt }), { param: 'prompt' })
  })

  it('has OpenAI’s maximum of 16 tokens where it names none', () => {
    assert.deepEqual(completionJob({ prompt: 'a' }).options, { maxTokens: 16 })
    assert.deepEqual(completionJob({ prompt: 'a', max_tokens: 40, logprobs: 0 }).options, { maxTokens: 40, logprobs: 0 })
  })

  it('gives each prompt the same seeds', () => {
    const job = completionJob({ prompt: ['a', 'b'], n: 2, seed: 5 })
    assert.deepEqual([0, 1, 2, 3].map((i) => sampleOptions(job, i).seed), [5, 6, 5, 6])
  })

  it('is refused where it would have another answer elsewhere', () => {
    for (const more of [{ echo: true }, { suffix: 'x' }, { best_of: 3 }, { messages: hello }]) {
      assert.throws(() => completionJob({ prompt: 'a', ...more }), { status: 400, param: Object.keys(more)[0] })
    }
  })
})

describe('a request of any kind', () => {
  it('is understood, or refused in OpenAI’s form: 10,000 random ones', () => {
    let state = 1
    const random = (count) => (state = (state * 48271) % 2147483647) % count
    const pick = (list) => list[random(list.length)]
    const words = ['user', 'tool', 'text', 'type', 'function', 'name', 'content', 'json_schema', 'schema', 'required', 'auto', '', '7', '__proto__']
    const value = (depth) => {
      const kind = random(depth > 0 ? 9 : 6)
      if (kind < 6) return pick([null, true, false, 0, 1, -1, 0.5, 1e300, ...words])
      if (kind < 7) return Array.from({ length: random(3) }, () => value(depth - 1))
      return Object.fromEntries(Array.from({ length: random(4) }, () => [pick(words), value(depth - 1)]))
    }
    const names = 'messages prompt n stop tools tool_choice response_format logit_bias chat_template_kwargs stream stream_options logprobs top_logprobs max_tokens best_of x'.split(' ')
    const tally = { understood: 0, refused: 0 }
    for (let i = 0; i < 10_000; i++) {
      const request = { messages: [value(3)], ...(random(2) && { messages: hello }), ...Object.fromEntries(Array.from({ length: random(3) }, () => [pick(names), value(4)])) }
      const { messages, ...text } = { prompt: 'a', ...request }
      for (const [understand, given] of [[chatJob, request], [completionJob, text]]) {
        try {
          understand(given)
          tally.understood++
        } catch (error) {
          assert.equal(error.name, 'OpenAIError', `${JSON.stringify(given)}: ${error.stack}`)
          tally.refused++
        }
      }
    }
    assert.ok(tally.understood > 2000 && tally.refused > 2000, JSON.stringify(tally))
  })
})

const timings = { loadMs: 0, prefillTokens: 2, cachedTokens: 1, prefillMs: 0, decodeTokens: 2, decodeMs: 0 }
const result = { text: '', ids: [1, 2], promptIds: [5, 6, 7], finishReason: 'stop', seed: 0, timings }
const chatResult = { ...result, content: 'Hi', reasoning: '', toolCalls: [], warnings: [] }
const probable = (token, top = []) => ({ id: 0, token, bytes: [...Buffer.from(token)], logprob: -1, top })

describe('an answer', () => {
  const format = chatFormat('m', {})

  it('is a chat completion', () => {
    const usage = usageOf([chatResult], 1)
    const { id, created, system_fingerprint, ...rest } = format.whole([chatResult], usage)
    assert.match(id, /^chatcmpl-[0-9a-f]{24}$/)
    assert.ok(Math.abs(created - Date.now() / 1000) < 60)
    assert.match(system_fingerprint, /^qwasm-/)
    assert.deepEqual(rest, {
      object: 'chat.completion',
      model: 'm',
      choices: [{ index: 0, message: { role: 'assistant', content: 'Hi', refusal: null }, logprobs: null, finish_reason: 'stop' }],
      usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5, prompt_tokens_details: { cached_tokens: 1 } },
    })
  })

  it('keeps thinking apart, and has no content beside mere calls', () => {
    const call = { id: 'call_1', type: 'function', function: { name: 'add', arguments: { a: 1 } } }
    const made = { ...chatResult, content: '', reasoning: 'hm', toolCalls: [call], finishReason: 'tool_calls' }
    const { message, finish_reason } = format.whole([made], usageOf([made], 1)).choices[0]
    assert.equal(finish_reason, 'tool_calls')
    assert.deepEqual(message, {
      role: 'assistant',
      content: null,
      refusal: null,
      reasoning_content: 'hm',
      tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'add', arguments: '{"a":1}' } }],
    })
  })

  it('streams as chunks of one id', () => {
    const deltas = [
      { reasoning: 'hm' },
      { content: 'Hi' },
      { toolCalls: [{ index: 0, id: 'call_1', name: 'add' }] },
      { toolCalls: [{ index: 0, id: 'call_1', arguments: '{"a"' }] },
    ]
    const chunks = [...format.opening(1), ...deltas.map((delta) => format.piece(1, delta)), format.closing(1, chatResult)]
    assert.deepEqual(
      chunks.map(({ choices }) => choices[0].delta),
      [
        { role: 'assistant', content: '' },
        { reasoning_content: 'hm' },
        { content: 'Hi' },
        { tool_calls: [{ index: 0, id: 'call_1', type: 'function', function: { name: 'add', arguments: '' } }] },
        { tool_calls: [{ index: 0, function: { arguments: '{"a"' } }] },
        {},
      ]
    )
    assert.deepEqual(chunks.map(({ choices }) => choices[0].finish_reason), [null, null, null, null, null, 'stop'])
    assert.equal(new Set(chunks.map(({ id }) => id)).size, 1)
    assert.ok(chunks.every((chunk) => chunk.object === 'chat.completion.chunk' && chunk.choices[0].index === 1 && !('usage' in chunk)))
  })

  it('has one tool call where no more were wanted', () => {
    const { oneCall } = chatJob({ messages: hello, tools: [weather], parallel_tool_calls: false })
    const one = chatFormat('m', { oneCall })
    const call = (name) => ({ id: name, type: 'function', function: { name, arguments: '{}' } })
    const made = { ...chatResult, toolCalls: [call('a'), call('b')], finishReason: 'tool_calls' }
    assert.deepEqual(one.whole([made], usageOf([made], 1)).choices[0].message.tool_calls, [call('a')])
    assert.deepEqual(one.piece(0, { toolCalls: [{ index: 1, id: 'b', name: 'b' }] }).choices[0].delta, {})
  })

  it('has its usage in a chunk of its own where that was asked for', () => {
    const asked = chatFormat('m', { includeUsage: true })
    assert.equal(asked.piece(0, { content: 'x' }).usage, null)
    const { choices, usage } = asked.usage(usageOf([chatResult], 1))
    assert.deepEqual([choices, usage.total_tokens], [[], 5])
  })

  it('counts a prompt once for all of its samples', () => {
    assert.equal(usageOf([result, result, result, result], 2).prompt_tokens, 6)
    assert.equal(usageOf([result, result, result, result], 2).completion_tokens, 8)
  })

  it('has log-probabilities of its content alone', () => {
    const tokens = ['<think>', 'Hi', '</think>', '\n\n', 'Hi', ' you', '!STO', 'P', '<|im_end|>'].map((token) => probable(token))
    const { logprobs } = format.whole([{ ...chatResult, content: 'Hi you!', logprobs: tokens }], usageOf([chatResult], 1)).choices[0]
    assert.deepEqual(logprobs.content.map(({ token }) => token), ['Hi', ' you', '!STO'])
    assert.deepEqual(logprobs.content[0], { token: 'Hi', bytes: [72, 105], logprob: -1, top_logprobs: [] })
    assert.equal(logprobs.refusal, null)
  })

  it('to a text is a text completion, with log-probabilities in the form of those', () => {
    const top = [{ id: 1, token: 'a', bytes: [97], logprob: -0.5 }, { id: 2, token: 'b', bytes: [98], logprob: -2 }]
    const made = { ...result, text: 'ab', logprobs: [probable('a', top), probable('b'), probable('<|endoftext|>')] }
    const { object, choices } = completionFormat('m', {}).whole([made], usageOf([made], 1))
    assert.equal(object, 'text_completion')
    assert.deepEqual(choices, [
      {
        index: 0,
        text: 'ab',
        logprobs: { tokens: ['a', 'b'], token_logprobs: [-1, -1], top_logprobs: [{ a: -0.5, b: -2 }, {}], text_offset: [0, 1] },
        finish_reason: 'stop',
      },
    ])
  })
})

describe('the types', () => {
  it('go with those of OpenAI’s own client: its requests go in, and what comes out is what it would give', () => {
    const file = join(temporaryFolder(), 'use.ts')
    writeFileSync(
      file,
      `import type Official from '${join(root, 'node_modules/openai/index.js')}'
      import type { OpenAI } from '${join(root, 'dist/types/openai/index.js')}'
      declare const chat: Official.ChatCompletionCreateParamsNonStreaming, chatStream: Official.ChatCompletionCreateParamsStreaming
      declare const text: Official.CompletionCreateParamsNonStreaming
      export async function use(openai: OpenAI): Promise<[Official.ChatCompletion, Official.Completion, Official.Model]> {
        for await (const chunk of await openai.chat.completions.create(chatStream)) chunk satisfies Official.ChatCompletionChunk
        return [await openai.chat.completions.create(chat), await openai.completions.create(text), await openai.models.retrieve('a')]
      }\n`
    )
    const options = ['--noEmit', '--strict', '--skipLibCheck', '--module', 'esnext', '--moduleResolution', 'bundler', '--target', 'es2022', '--types', 'node']
    const tsc = join(root, 'node_modules/typescript/bin/tsc')
    const { status, stdout } = spawnSync(process.execPath, [tsc, '--ignoreConfig', '--typeRoots', join(root, 'node_modules/@types'), ...options, file], { encoding: 'utf8' })
    assert.equal(status, 0, stdout)
  })
})
