// Whatever is asked of a model: 10,000 random calls, eight at a time. Each ends, well or with a typed error, and the model is as good as before.
import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { loadModel } from '../../dist/node.js'
import { conversations, randomChoices } from './support/conversations.mjs'
import { qwen3Tokenizer } from './support/models.mjs'
import { randomModel } from './support/random-model.mjs'

const CALLS = 10_000
const AT_ONCE = 8

const folder = randomModel()
const { chat_template: template } = JSON.parse(readFileSync(join(qwen3Tokenizer, 'tokenizer_config.json'), 'utf8'))
writeFileSync(join(folder, 'chat_template.jinja'), template)

const random = randomChoices(11)
const { below, pick, several } = random
const { value, seldom, messages, templateOptions } = conversations(random)
/** An option in one of six calls; seldom with one of the wrong values, or with anything. */
const often = (name, good, wrong = []) => below(6) === 0 && { [name]: below(25) > 0 ? pick(...good) : pick(value(), ...wrong) }

const responseFormat = () => pick(
  { type: 'text' },
  { type: 'json_object' },
  { type: 'json_schema', schema: pick({}, true, { type: 'string', maxLength: 2 }, { enum: [1, 'a'] }, { not: {} }, { $ref: '#' }, { minimum: value() }) },
  { type: 'regex', pattern: pick('[a-c]{2}', '(', '\\d+|x', 'a?') },
  { type: 'grammar', grammar: pick('root ::= "a" | "bc"', 'root ::= root', 'x', 'root ::= [^"]*') }
)

function options() {
  const { signal } = new AbortController()
  return {
    maxTokens: 1 + below(3),
    ...often('temperature', [0, 0.7, 1.5, 1e308], [-1, NaN]),
    ...often('topK', [0, 1, 40, 2 ** 40], [-1, 0.5]),
    ...often('topP', [0, 0.9, 1], [1.1]),
    ...often('minP', [0, 0.5, 1], [-0.1]),
    ...often('repetitionPenalty', [1.1, 1e-300, 1e300], [0]),
    ...often('presencePenalty', [2, -2], [3]),
    ...often('frequencyPenalty', [2, -2], [NaN]),
    ...often('logitBias', [{}, { 5: 100 }, { 1: -100 }], [{ 99999999: 1 }, { a: 1 }]),
    ...often('logprobs', [0, 3, 20], [21]),
    ...often('n', [1, 2], [0]),
    ...often('seed', [0, 2 ** 53 - 1], [2 ** 53]),
    ...often('stop', ['a', ['e', 'the'], []], ['']),
    ...often('ignoreEos', [true, false]),
    ...often('responseFormat', [responseFormat()]),
    ...often('signal', [signal, AbortSignal.abort(), AbortSignal.timeout(1)]),
    ...(below(40) === 0 && { [pick('maxtokens', '__proto__', 'foo')]: 1 }),
  }
}

const chat = model => model.chat(messages(), { ...options(), ...templateOptions(), ...often('overflow', ['slide', 'error']) })
const generate = model => model.generate(pick('Hi', 'once more', [1, 2, 3], seldom(() => pick('', [], [-1], [1e9], 'x'.repeat(3000)))), options())

/** How a call ended: undefined for an error that is none of the package's. */
function kindOf(reason) {
  if (!reason) return 'good'
  return reason.name === 'AbortError' ? 'aborted' : reason.name === 'QwasmError' ? reason.code : undefined
}

describe('a model that is asked anything', () => {
  let model
  before(async () => (model = await loadModel(folder, { dtype: 'exact', threads: 1, contextLength: 256 })))
  after(() => model.dispose())

  const known = () => model.generate([5, 6, 7, 8], { temperature: 0, maxTokens: 8, ignoreEos: true }).result()

  it(`ends each of ${CALLS} calls well or with a typed error, and answers then as before`, { timeout: 300_000 }, async () => {
    const expected = await known()
    const counts = {}
    for (let i = 0; i < CALLS; i += AT_ONCE) {
      const streams = Array.from({ length: AT_ONCE }, () => pick(chat, generate)(model))
      for (const stream of streams) if (below(30) === 0) stream.stop()
      for (const { reason } of await Promise.allSettled(streams.map(stream => stream.result()))) {
        const kind = kindOf(reason)
        assert.ok(kind && !['internal', 'dead'].includes(kind), reason?.stack)
        counts[kind] = (counts[kind] ?? 0) + 1
      }
      if (i % 1000 === 0) assert.deepEqual((await known()).ids, expected.ids)
    }
    assert.deepEqual((await known()).ids, expected.ids)
    assert.ok(counts.good > CALLS / 8 && counts.invalid_argument > CALLS / 8 && counts.aborted > 100, JSON.stringify(counts))
  })
})
