// A budget for thinking: what the engine appends, and what the demo model makes of it.
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { loadModel } from '../../dist/node.js'
import { demo } from './support/models.mjs'
import { importSource } from './support/source.mjs'

const { AnswerGuide } = await importSource('chat/guide.ts')

/** What a guide appends while the model draws these texts: [after which, what] pairs; -1 is before the first. */
function lead(options, drawn) {
  const guide = new AnswerGuide({ mayThink: true, ...options })
  const leads = [[-1, guide.start()], ...drawn.map((text, i) => [i, guide.after(text)])]
  return leads.filter(([, given]) => given !== undefined)
}

const CLOSING = { text: '\n</think>\n\n' }

describe('a thinking budget', () => {
  const cases = [
    ['closes the block after so many tokens', { budget: 3 }, ['<think>', '\n', 'a', 'b', 'c'], [[3, CLOSING]]],
    ['counts tokens of a block that the prompt opened', { budget: 2, opened: '<think>\n' }, ['a', 'b'], [[1, CLOSING]]],
    ['of 0 closes a block as it opens, as the template writes an empty one', { budget: 0 }, ['<think>'], [[0, { text: '\n\n</think>\n\n' }]]],
    ['of 0 closes the prompt’s block at once', { budget: 0, opened: '<think>\n' }, [], [[-1, CLOSING]]],
    ['adds no second line break', { budget: 2 }, ['<think>', 'a', '.\n'], [[2, { text: '</think>\n\n' }]]],
    ['completes an empty block', { budget: 1 }, ['<think>', '\n'], [[1, CLOSING]]],
    ['that is not spent changes nothing', { budget: 9 }, ['<think>', 'a', '</think>', '\n\n', 'b', 'c'], []],
    ['has no say outside the block', { budget: 1 }, ['No', ' ', '<think>', 'a', 'b'], []],
    ['has no say after the block', { budget: 1 }, ['<think>', '</think>', 'a', 'b'], []],
    ['waits for a character that is cut, but not for long', { budget: 1 }, ['<think>', '', '🫠'], [[2, CLOSING]]],
    ['does not wait for ever', { budget: 1 }, ['<think>', '', '', '', ''], [[4, { text: '\n\n</think>\n\n' }]]],
    ['closes once', { budget: 1 }, ['<think>', 'a', 'b', 'c'], [[1, CLOSING]]],
  ]
  for (const [name, options, drawn, expected] of cases) it(name, () => assert.deepEqual(lead(options, drawn), expected))
})

describe('an answer whose content is bound', () => {
  const bound = { beginning: '<tool_call>\n', grammar: 'root ::= "x"' }
  const call = (before) => ({ text: `${before}<tool_call>\n`, grammar: bound.grammar })
  const cases = [
    ['begins with it where the model does not think', { mayThink: false }, [], [[-1, call('')]]],
    ['begins by thinking where the model may', {}, ['a', '\n', '</think>'], [[-1, { text: '<think>\n' }], [2, call('\n\n')]]],
    ['goes on after a block that the prompt opened', { opened: '<think>\n' }, ['a', '\n</think>\n'], [[1, call('\n')]]],
    ['goes on after a block that is closed by force', { budget: 1 }, ['a'], [[-1, { text: '<think>\n' }], [0, call('\n</think>\n\n')]]],
    ['goes on at once where there is no budget', { budget: 0 }, [], [[-1, call('<think>\n\n</think>\n\n')]]],
  ]
  for (const [name, options, drawn, expected] of cases) it(name, () => assert.deepEqual(lead({ bound, ...options }, drawn), expected))
})

describe('a model that thinks', () => {
  const question = [{ role: 'user', content: 'What is 47 + 85?' }]
  const ask = (options) => model.chat(question, { temperature: 0, ...options }).result()
  let model, free
  before(async () => {
    model = await loadModel(demo, { dtype: 'exact' })
    free = await ask({})
  })
  after(() => model.dispose())

  /** Ids that are fed as a whole give the same next ids as those that were drawn or appended one by one. */
  async function assertCold({ promptIds, ids }, from) {
    const cold = await loadModel(demo, { dtype: 'exact', threads: 1 })
    const rest = await cold.generate([...promptIds, ...ids.slice(0, from)], { temperature: 0 }).result()
    await cold.dispose()
    assert.deepEqual(rest.ids, ids.slice(from))
  }

  it('goes on with the answer when the budget is spent', async () => {
    const budget = 8
    const result = await ask({ thinkingBudget: budget })
    const [open, close] = [await model.tokenize('<think>'), await model.tokenize('</think>')]
    const inside = result.ids.indexOf(close[0]) - result.ids.indexOf(open[0]) - 1
    assert.equal(inside, budget + 1) // and the line break before the tag
    assert.deepEqual(result.ids.slice(0, budget + 1), free.ids.slice(0, budget + 1))
    assert.ok(free.reasoning.startsWith(result.reasoning) && result.reasoning !== free.reasoning)
    assert.match(result.content, /\d/)
    assert.equal(result.text, await model.detokenize(result.ids, { skipSpecial: true }))
    assert.equal(result.finishReason, 'stop')
    assert.equal(result.timings.decodeTokens, result.ids.length)
    await assertCold(result, result.ids.indexOf(close[0]) + 2)
  })

  it('with a budget of 0 answers as without thinking', async () => {
    const none = await ask({ thinkingBudget: 0 })
    const off = await ask({ thinking: false })
    assert.equal(none.reasoning, '')
    assert.equal(none.content, off.content)
    assert.deepEqual([...none.promptIds, ...none.ids], [...off.promptIds, ...off.ids])
  })

  it('with a budget that it does not spend answers as without one', async () =>
    assert.deepEqual((await ask({ thinkingBudget: 1000 })).ids, free.ids))

  it('tells log-probabilities of what is appended, too', async () => {
    const options = { thinkingBudget: 8, logprobs: 1 }
    const result = await ask(options)
    assert.deepEqual(result.ids, (await ask({ thinkingBudget: 8 })).ids)
    assert.deepEqual(result.logprobs.map(({ id }) => id), result.ids)
    const close = result.ids.indexOf((await model.tokenize('</think>'))[0])
    const before = [...result.promptIds, ...result.ids.slice(0, close)]
    const logits = await model.logits(before, { positions: 'last' })
    const sum = logits.reduce((total, logit) => total + Math.exp(logit), 0)
    assert.ok(Math.abs(result.logprobs[close].logprob - (logits[result.ids[close]] - Math.log(sum))) < 1e-5)
  })

  it('counts for penalties what came before what is appended', async () => {
    const loud = (await model.tokenize('the'))[0]
    const options = { thinkingBudget: 4, logitBias: { [loud]: 100 }, frequencyPenalty: 2, ignoreEos: true, maxTokens: 60 }
    const { ids } = await model.chat(question, { ...options, temperature: 0, logprobs: 0 }).result()
    const { ids: plain } = await model.chat(question, { ...options, temperature: 0 }).result()
    assert.deepEqual(ids, plain)
    // 100 - 2 for each time lifts the word above the others for about as many tokens as without an insertion.
    const free = await model.chat(question, { ...options, thinkingBudget: undefined, temperature: 0 }).result()
    const count = (list) => list.filter((id) => id === loud).length
    assert.ok(Math.abs(count(ids) - count(free.ids)) <= 2, `${count(ids)} and ${count(free.ids)}`)
  })

  it('ends by length within what is appended', async () => {
    for (const maxTokens of [9, 10, 11]) {
      const result = await ask({ thinkingBudget: 8, maxTokens })
      assert.equal(result.ids.length, maxTokens)
      assert.equal(result.finishReason, 'length')
    }
  })

  it('streams what the result holds', async () => {
    const stream = model.chat(question, { temperature: 0, thinkingBudget: 8 })
    const shown = { reasoning: '', content: '' }
    for await (const delta of stream) for (const [side, text] of Object.entries(delta)) shown[side] += text
    const { reasoning, content } = await stream.result()
    assert.deepEqual(shown, { reasoning, content })
  })

  it('refuses a budget that is none', async () => {
    for (const thinkingBudget of [-1, 1.5, NaN, '3']) {
      await assert.rejects(ask({ thinkingBudget }), { code: 'invalid_argument', message: /thinkingBudget/ })
    }
  })
})
