// A process of its own that loads a model, generates, and tells what that took: its memory counts nothing else.
// node measured-generation.mjs SOURCE IDS_AS_JSON TOKENS CONTEXT_LENGTH → one line of JSON
import { readFileSync } from 'node:fs'
import { loadModel } from '../../../dist/node.js'

const [source, ids, maxTokens, contextLength] = process.argv.slice(2)
const progress = []
const model = await loadModel(source, {
  dtype: 'exact',
  contextLength: Number(contextLength),
  onProgress: ({ loaded, total }) => progress.push([loaded, total]),
})
const result = await model.generate(JSON.parse(ids), { temperature: 0, maxTokens: Number(maxTokens), ignoreEos: true }).result()
const logits = await model.logits(JSON.parse(ids))
const { info } = model
await model.dispose()

// Linux counts the bytes that a process read by system calls, and its largest resident memory.
const bytesRead = Number(/^rchar: (\d+)$/m.exec(readFileSync('/proc/self/io', 'utf8'))[1])
const peak = 1024 * Number(/^VmHWM:\s+(\d+) kB$/m.exec(readFileSync('/proc/self/status', 'utf8'))[1])
const rows = Array.from({ length: logits.length / info.vocabSize }, (_, row) => row * info.vocabSize)
const sampled = JSON.parse(readFileSync(new URL('../../golden/synthetic-qwen3-0.6b.json', import.meta.url), 'utf8')).sampled
const picked = rows.map((start) => sampled.map((id) => logits[start + id]))
console.log(
  JSON.stringify({ ids: result.ids, finishReason: result.finishReason, picked, info, progress: progress.at(-1), bytesRead, peak })
)
