// Measures node-llama-cpp:   node-llama-cpp.mjs FILE.gguf SHAPE_AS_JSON PACKAGE_ENTRY_FILE
import { pathToFileURL } from 'node:url'
import { better, promptIds } from './shape.mjs'

const [modelPath, shape, entry] = process.argv.slice(2)
const { promptTokens, decodeTokens, threads, times } = JSON.parse(shape)
const { getLlama } = await import(pathToFileURL(entry).href)
const llama = await getLlama({ gpu: false, build: 'never', maxThreads: threads, logLevel: 'error' })
const model = await llama.loadModel({ modelPath })
const context = await model.createContext({ contextSize: 1024, threads, batchSize: 512 })
const sequence = context.getSequence()

async function prefillRate(time) {
  await sequence.clearHistory()
  const start = performance.now()
  await sequence.evaluateWithoutGeneratingNewTokens(promptIds(promptTokens, time))
  return 1000 * promptTokens / (performance.now() - start)
}

async function decodeRate() {
  await sequence.clearHistory()
  let start
  let count = -1 // the first token comes with the prompt
  for await (const _token of sequence.evaluate([1000], { temperature: 0, yieldEogToken: true })) {
    start ??= performance.now()
    if (++count === decodeTokens) break
  }
  return 1000 * count / (performance.now() - start)
}

let best
for (let time = 0; time < times; time++) best = better(best, { prefill: await prefillRate(time), decode: await decodeRate() })
console.log(JSON.stringify(best))
process.exit()
