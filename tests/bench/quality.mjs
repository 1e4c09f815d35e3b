// npm run bench:quality: what q8 and q4 cost in quality on the demo model, against exact mode and against plain Q4_0.
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { main, root, step } from '../../scripts/tools.mjs'
import { loadModel } from '../../dist/node.js'
import { roundTripQ4_0, writeDecodedCopy } from './decoded-copy.mjs'
import { compare, shareRight } from './quality-measures.mjs'
import { encode, folder, freshQuestions, heldOutConversations } from './quality-texts.mjs'
import { table } from './report.mjs'

const DEMO = join(root, 'models/demo')
const Q4_0 = join(folder, 'demo-q4_0')

const { values: options } = parseArgs({
  options: {
    conversations: { type: 'string', default: '200' },
    questions: { type: 'string', default: '300' },
    json: { type: 'boolean', default: false },
    markdown: { type: 'boolean', default: false },
  },
})

/** A model that others run beside: with one thread, which changes none of its bits. */
const load = (source, dtype) => loadModel(source, { dtype, threads: 1 })

/** Name → { all, learnt }, each { tokens, kl, agreement }. */
async function distances(count) {
  writeDecodedCopy(DEMO, Q4_0, roundTripQ4_0)
  const exact = await load(DEMO, 'exact')
  const models = { q8: await load(DEMO, 'q8'), q4: await load(DEMO, 'q4'), 'Q4_0 decoded': await load(Q4_0, 'exact') }
  const texts = await Promise.all((await heldOutConversations(count)).map(conversation => encode(exact, conversation)))
  const found = await compare(exact, models, texts)
  await Promise.all([exact, ...Object.values(models)].map(model => model.dispose()))
  return found
}

/** Skill, with thinking and without → share of right answers. */
async function rightAnswers(dtype, questions) {
  const model = await load(DEMO, dtype)
  const found = {}
  for (const [skill, asked] of Object.entries(questions)) {
    found[`${skill}, thinking`] = await shareRight(model, asked, true)
    found[skill] = await shareRight(model, asked, false)
  }
  await model.dispose()
  return found
}

/** Dtype → what rightAnswers gives. */
async function allAnswers(count) {
  const questions = await freshQuestions(count)
  return Object.fromEntries(await Promise.all(['exact', 'q8', 'q4'].map(async dtype => [dtype, await rightAnswers(dtype, questions)])))
}

function requirements({ q8, q4, 'Q4_0 decoded': plain }) {
  return [
    { what: "q4's mean KL is no worse than plain Q4_0's, all tokens", found: q4.all.kl, most: plain.all.kl, met: q4.all.kl <= plain.all.kl },
    { what: "q8's likeliest token is exact mode's on learnt tokens", found: q8.learnt.agreement, least: 0.995, met: q8.learnt.agreement >= 0.995 },
  ]
}

const percent = share => `${(100 * share).toFixed(1)} %`

function distanceRows(found) {
  const rows = Object.entries(found).map(([name, { all, learnt }]) =>
    [name, all.kl.toPrecision(3), learnt.kl.toPrecision(3), percent(all.agreement), percent(learnt.agreement)])
  return [['against exact', 'KL, all tokens', 'KL, learnt', 'same likeliest token, all', 'same likeliest token, learnt'], ...rows]
}

function answerRows(found) {
  const dtypes = Object.keys(found)
  const rows = Object.keys(found.exact).map(skill => [skill, ...dtypes.map(dtype => percent(found[dtype][skill]))])
  return [['right answers', ...dtypes], ...rows]
}

function show(report) {
  const { all, learnt } = report.distances.q8
  console.log(`${all.tokens} held-out tokens, ${learnt.tokens} of them learnt; ${options.questions} questions of each skill\n`)
  console.log(`${table(distanceRows(report.distances), options.markdown)}\n`)
  console.log(`${table(answerRows(report.answers), options.markdown)}\n`)
  for (const { what, found, most, least, met } of report.requirements) {
    console.log(`${met ? 'ok    ' : 'MISSED'} ${what}: ${found.toPrecision(4)}, ${least === undefined ? `at most ${most.toPrecision(4)}` : `at least ${least}`}`)
  }
}

await main(async () => {
  const found = await step('Comparing logits', () => distances(Number(options.conversations)))
  const answers = await step('Asking questions', () => allAnswers(Number(options.questions)))
  const report = { distances: found, answers, requirements: requirements(found) }
  if (options.json) console.log(JSON.stringify(report, null, 2))
  else show(report)
})
