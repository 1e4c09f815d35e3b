// npm run bench:gguf: whether native llama.cpp loads the GGUF files that qwasm writes, and says the same as qwasm about the same tokens.
import { createWriteStream, mkdirSync, readdirSync, rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { Writable } from 'node:stream'
import { parseArgs } from 'node:util'
import { main, root, step } from '../../scripts/tools.mjs'
import { NativeModel } from './gguf-native.mjs'
import { BENCH, TOKENIZER, fullSizeModel, installLlamaCpp, prepareQwasm } from './install.mjs'
import { compare } from './quality-measures.mjs'
import { encode, heldOutConversations } from './quality-texts.mjs'
import { table } from './report.mjs'

const folder = join(BENCH, 'gguf')
const CONVERSATIONS = 100 // more than the tokens that are asked for

/** By the file's dtype: what is loaded, how llama.cpp keeps keys and values, and how often the likeliest token must be the same. */
const FILES = {
  q8: { dtype: 'q8', kv: 'f16', agreement: 0.99 },
  q4: { dtype: 'q4', kv: 'f16', agreement: 0.99 },
  f16: { dtype: 'exact', kv: 'f32', agreement: 0.999 },
}
const MOST_KL = 1e-3

const { values: options } = parseArgs({
  options: {
    model: { type: 'string', multiple: true, default: ['demo', 'full-size'] },
    dtype: { type: 'string', multiple: true, default: Object.keys(FILES) },
    tokens: { type: 'string', default: '2000' },
    threads: { type: 'string', default: '2' },
    json: { type: 'boolean', default: false },
    markdown: { type: 'boolean', default: false },
  },
})

/** The model with Qwen3-0.6B's shapes and random weights, beside the tokenizer that it came without. */
async function fullSizeWithTokenizer() {
  const place = join(folder, 'qwen3-0.6b')
  rmSync(place, { recursive: true, force: true })
  mkdirSync(place, { recursive: true })
  const link = from => {
    for (const name of readdirSync(from)) symlinkSync(join(from, name), join(place, name))
  }
  link(await fullSizeModel())
  link(TOKENIZER)
  return place
}

const MODELS = { demo: () => join(root, 'models/demo'), 'full-size': fullSizeWithTokenizer }

/** Conversations of so many tokens in all, the last one cut. */
async function textsOf(model, tokens) {
  const texts = []
  let left = tokens
  for (const conversation of await heldOutConversations(CONVERSATIONS)) {
    if (left <= 0) break
    const { ids, learnt } = await encode(model, conversation)
    texts.push({ text: conversation.map(([text]) => text).join(''), ids: ids.slice(0, left), learnt: learnt.slice(0, left) })
    left -= ids.length
  }
  return texts
}

/** Of how many texts llama.cpp, by the file's tokenizer, makes the same ids. */
async function sameIds(model, native, texts) {
  let same = 0
  for (const { text } of texts) {
    const [ours, theirs] = [await model.tokenize(text), await native.tokenize(text)]
    if (ours.join() === theirs.join()) same++
  }
  return same / texts.length
}

async function check(python, name, source, file) {
  const { loadModel } = await import('../../dist/node.js')
  const { dtype, kv, agreement: least } = FILES[file]
  const threads = Number(options.threads)
  const path = join(folder, `${name}-${file}.gguf`)
  const model = await loadModel(source, { dtype, threads })
  const bytes = await model.saveGguf(Writable.toWeb(createWriteStream(path)))
  const native = new NativeModel(python, path, { threads, kv })
  try {
    const texts = await textsOf(model, Number(options.tokens))
    const { all } = (await compare(model, { native }, texts)).native
    const ids = await sameIds(model, native, texts)
    return { model: name, file, bytes, ...all, sameIds: ids, met: all.agreement >= least && all.kl <= MOST_KL && ids === 1 }
  } finally {
    native.end()
    await model.dispose()
    rmSync(path)
  }
}

const percent = share => `${(100 * share).toFixed(2)} %`

function show(results) {
  const rows = results.map(({ model, file, bytes, tokens, kl, agreement, lostLead, sameIds, met }) =>
    [model, file, `${(bytes / 1e6).toFixed(1)} MB`, String(tokens), kl.toPrecision(3), percent(agreement), `${lostLead.toFixed(3)} nats`, percent(sameIds), met ? 'ok' : 'MISSED'])
  console.log(table([['model', 'file', 'size', 'tokens', 'mean KL', 'same likeliest token', 'largest lead that was lost', 'texts with the same ids', ''], ...rows], options.markdown))
}

await main(async () => {
  await prepareQwasm()
  const python = await installLlamaCpp()
  mkdirSync(folder, { recursive: true })
  const results = []
  for (const name of options.model) {
    const source = await MODELS[name]()
    for (const file of options.dtype) results.push(await step(`${name}, ${file}`, () => check(python, name, source, file)))
  }
  if (options.json) console.log(JSON.stringify(results, null, 2))
  else show(results)
  if (!results.every(({ met }) => met)) process.exitCode = 1
})
