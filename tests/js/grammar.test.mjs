// Answers bound by schemas, expressions and grammars: what comes is valid, ends, and what cannot be bound is refused by name.
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import Ajv from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import { loadModel, QwasmError } from '../../dist/node.js'
import { demo } from './support/models.mjs'
import { randomModel } from './support/random-model.mjs'
import { schemas } from './support/schemas.mjs'

const folder = randomModel()
const ajv = addFormats(new Ajv({ strict: false, allErrors: true }))
let random, taught
before(async () => ([random, taught] = await Promise.all([folder, demo].map(model => loadModel(model, { dtype: 'exact', threads: 1 })))))
after(() => Promise.all([random, taught].map(model => model.dispose())))

const bound = (model, responseFormat, options) => model.generate('Answer: ', { maxTokens: 120, temperature: 1.5, topK: 0, topP: 1, ...options, responseFormat }).result()
const json = (model, schema, options) => bound(model, { type: 'json_schema', schema }, options)
const failure = (code, message) => error => {
  assert.ok(error instanceof QwasmError, String(error))
  assert.equal(error.code, code, error.message)
  assert.match(error.message, message)
  return true
}

describe('a json_schema', () => {
  for (const [name, schema] of Object.entries(schemas)) {
    it(`${name}: what random weights write is valid, 20 times`, async () => {
      const valid = ajv.compile(schema)
      let finished = 0
      for (let seed = 0; seed < 20; seed++) {
        const { text, ids, finishReason } = await json(random, schema, { seed })
        if (finishReason === 'length') {
          assert.equal(ids.length, 120)
          continue
        }
        assert.equal(finishReason, 'stop')
        finished++
        assert.ok(valid(JSON.parse(text)), `seed ${seed}: ${text}: ${ajv.errorsText(valid.errors)}`)
      }
      assert.ok(finished > 0, 'none of 20 was finished')
    })
  }

  it('has members in its order, a space behind commas and colons, and no line breaks', async () => {
    const properties = { name: { const: 'x' }, list: { const: [1, { a: 2 }] } }
    const { text } = await json(random, { type: 'object', properties, required: ['name', 'list'] })
    assert.equal(text, '{"name": "x", "list": [1, {"a": 2}]}')
  })

  it('draws nothing where only one text can follow, and its tokens are those of the text', async () => {
    const { text, ids, finishReason } = await json(taught, { const: 'a story about the little dog and the cat' })
    assert.deepEqual(ids, await taught.tokenize(text))
    assert.equal(finishReason, 'stop')
    const drawn = await json(taught, { enum: ['a story about the little dog', 'a story about the little cat'] }, { seed: 4 })
    assert.match(drawn.text, /^"a story about the little (dog|cat)"$/)
  })

  it('gives the same tokens from the same seed, whatever came before', async () => {
    const again = () => json(random, schemas.person, { seed: 11 })
    const first = await again()
    await json(random, schemas.tuple, { seed: 1 })
    assert.deepEqual((await again()).ids, first.ids)
    const free = await random.generate('Answer: ', { maxTokens: 5, temperature: 0 }).result()
    assert.equal(free.ids.length, 5, 'a call without a format is free again')
  })

  it('that refers to itself may go deep', async () => {
    const list = { $ref: '#/$defs/l', $defs: { l: { type: 'array', items: { $ref: '#/$defs/l' }, minItems: 1, maxItems: 1 } } }
    await assert.rejects(json(random, list), failure('invalid_argument', /can never end/))
    list.$defs.l.minItems = 0
    const { text, finishReason } = await json(random, list, { seed: 5 })
    if (finishReason === 'stop') assert.match(text, /^(\[*)(\]*)$/)
  })

  it('refuses keywords it does not know, and names them and their place', async () => {
    const refused = {
      'the keyword not': { not: {} },
      'uniqueItems': { type: 'array', uniqueItems: true },
      'the keyword patternProperties': { type: 'object', patternProperties: {} },
      'the keyword requird': { type: 'object', requird: [] },
      "the format 'iri'": { type: 'string', format: 'iri' },
      '\\(\\?= of regular expressions': { type: 'string', pattern: '^(?=a)b$' },
      '\\\\1 of regular expressions': { type: 'string', pattern: '^(a)\\1$' },
      'minLength and maxLength beside': { type: 'string', pattern: 'a|b', minLength: 2 },
      'multipleOf 0.01': { type: 'number', multipleOf: 0.01 },
      'oneOf, where branches 0 and 1': { oneOf: [{ type: 'integer' }, { type: 'number' }] },
      'the reference .https://example.org/x': { $ref: 'https://example.org/x' },
    }
    for (const [what, schema] of Object.entries(refused)) {
      const nested = { type: 'object', properties: { 'a/b': schema } }
      await assert.rejects(json(random, nested), failure('unsupported', new RegExp(`^responseFormat\\.schema/properties/a~1b.*${what}`)))
    }
  })

  it('that no value fits, or that is no schema, is an error', async () => {
    await assert.rejects(json(random, false), failure('invalid_argument', /no value fits/))
    await assert.rejects(json(random, { type: 'integer', minimum: 3, maximum: 2 }), failure('invalid_argument', /no value fits/))
    await assert.rejects(json(random, { allOf: [{ type: 'string' }, { type: 'null' }] }), failure('invalid_argument', /no value fits/))
    await assert.rejects(json(random, { type: 'text' }), failure('invalid_argument', /responseFormat\.schema\/type: 'text'/))
    await assert.rejects(json(random, { $ref: '#/$defs/none' }), failure('invalid_argument', /'#\/\$defs\/none' is not there/))
    await assert.rejects(json(random, { type: 'string', pattern: '(' }), failure('invalid_argument', /responseFormat\.schema\/pattern/))
  })
})

describe('a json_object', () => {
  it('is an object', async () => {
    let finished = 0
    for (let seed = 0; seed < 20; seed++) {
      const { text, finishReason } = await bound(random, { type: 'json_object' }, { seed, maxTokens: 300 })
      if (finishReason !== 'stop') continue
      assert.equal(Object.prototype.toString.call(JSON.parse(text)), '[object Object]')
      finished++
    }
    assert.ok(finished > 0)
  })
})

describe('a regex', () => {
  const expressions = ['[a-c]{3}', '^(?:yes|no)!?$', '\\d{2}:\\d{2}', 'x[^\\s\\w]+?y', '(?<year>[12]\\d{3})-\\u{1F600}|\\x41\\t', '[\\u4e00-\\u4eff]{2}', '.{4}']
  for (const pattern of expressions) {
    it(`${pattern} is matched as a whole`, async () => {
      for (let seed = 0; seed < 20; seed++) {
        const { text, finishReason } = await bound(random, { type: 'regex', pattern }, { seed })
        if (finishReason === 'stop') assert.match(text, new RegExp(`^(?:${pattern})$`, 'u'))
      }
    })
  }
})

describe('a grammar', () => {
  it('is followed, and what it has no end for is length', async () => {
    const grammar = 'root ::= "(" root ")" | [0-9]+ | "é"'
    for (let seed = 0; seed < 20; seed++) {
      const { text, finishReason } = await bound(random, { type: 'grammar', grammar }, { seed, maxTokens: 30 })
      if (finishReason === 'stop') assert.match(text, /^\(*(\d+|é)\)*$/)
      assert.equal(text.split('(').length >= text.split(')').length, true)
    }
    const cut = await bound(random, { type: 'grammar', grammar: 'root ::= [a-z]{100}' }, { seed: 2, maxTokens: 5 })
    assert.deepEqual([cut.finishReason, cut.ids.length], ['length', 5])
  })

  it('with a mistake is an error with its line, and the model goes on', async () => {
    const wrong = bound(random, { type: 'grammar', grammar: 'root ::= item\nitem ::= "a' })
    await assert.rejects(wrong, failure('invalid_argument', /^grammar, line 2: expected the literal's closing "/))
    assert.equal((await bound(random, { type: 'regex', pattern: 'ok' })).text, 'ok')
  })
})

describe('in a chat', () => {
  const question = [{ role: 'user', content: 'What is 47 + 85?' }]
  const number = { type: 'json_schema', schema: { type: 'object', properties: { answer: { type: 'integer', minimum: 0 } }, required: ['answer'] } }

  it('the content is bound, and thinking is free', async () => {
    const { content, reasoning, finishReason } = await taught.chat(question, { temperature: 0, thinking: true, responseFormat: number }).result()
    assert.ok(JSON.parse(content).answer >= 0)
    assert.match(reasoning, /7 \+ 5/)
    assert.equal(finishReason, 'stop')
  })

  it('without thinking the content begins at once', async () => {
    const { content, reasoning } = await taught.chat(question, { temperature: 0, thinking: false, responseFormat: number }).result()
    assert.ok(JSON.parse(content).answer >= 0)
    assert.equal(reasoning, '')
  })

  it('a block of thinking that would end the answer is closed, and the content comes', async () => {
    for (let seed = 0; seed < 5; seed++) {
      const { content, finishReason } = await taught.chat(question, { temperature: 3, seed, thinking: true, responseFormat: { type: 'regex', pattern: 'ok' } }).result()
      assert.deepEqual([content, finishReason], ['ok', 'stop'])
    }
  })
})

describe('toolChoice', () => {
  const parameters = { type: 'object', properties: { city: { type: 'string', maxLength: 6 }, days: { type: 'integer', minimum: 1, maximum: 9 } }, required: ['city'] }
  const tools = [{ type: 'function', function: { name: 'get_weather', parameters } }, { type: 'function', function: { name: 'add', parameters: { type: 'object', properties: {} } } }]
  const call = options => taught.chat([{ role: 'user', content: 'Hello!' }], { tools, temperature: 1.5, thinking: false, maxTokens: 100, ...options }).result()

  it('required makes calls whose arguments are valid', async () => {
    const valid = ajv.compile(parameters)
    const names = new Set()
    for (let seed = 0; seed < 10; seed++) {
      const { toolCalls, finishReason, warnings, content } = await call({ toolChoice: 'required', seed })
      assert.deepEqual([toolCalls.length, finishReason, warnings, content], [1, 'tool_calls', [], ''])
      const { name, arguments: given } = toolCalls[0].function
      names.add(name)
      if (name === 'get_weather') assert.ok(valid(JSON.parse(given)), given)
      else assert.equal(given, '{}')
    }
    assert.equal(names.size, 2)
  })

  it('a name makes calls of that tool', async () => {
    const { toolCalls } = await call({ toolChoice: { name: 'get_weather' }, seed: 3 })
    assert.equal(toolCalls[0].function.name, 'get_weather')
  })

  it('beside responseFormat must say which of both is meant', async () => {
    const responseFormat = { type: 'regex', pattern: 'ok' }
    await assert.rejects(call({ responseFormat }), failure('unsupported', /no room for tool calls/))
    assert.equal((await call({ responseFormat, toolChoice: 'none' })).content, 'ok')
  })
})

describe('responseFormat itself', () => {
  it('is checked', async () => {
    for (const wrong of ['json', {}, { type: 'xml' }, { type: 'regex' }, { type: 'json_schema', schema: 1 }, { type: 'text', schema: {} }, { type: 'grammar', pattern: 'x' }]) {
      await assert.rejects(bound(random, wrong), failure('invalid_argument', /the option responseFormat must be/))
    }
  })
})
