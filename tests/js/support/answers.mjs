// A process of its own, under whichever Node.js, that runs the demo model and tells its rung, and per golden case greedy ids and logits' bits.
// node answers.mjs DTYPE → one line of JSON
import { join } from 'node:path'
import { loadModel } from '../../../dist/node.js'
import { goldenCases, root, wordHash } from '../../support/golden.mjs'

const [dtype] = process.argv.slice(2)
const model = await loadModel(join(root, 'models/demo'), { dtype })
const results = []
for (const { ids, positions, greedy } of goldenCases('tests/golden/demo')) {
  const bits = wordHash(await model.logits(ids, { positions }))
  results.push({ bits, ids: (await model.generate(ids, { temperature: 0, maxTokens: greedy.length }).result()).ids })
}
const { variant, threads, why } = model.info
await model.dispose()
console.log(JSON.stringify({ version: process.versions.node, variant, threads, why, results }))
