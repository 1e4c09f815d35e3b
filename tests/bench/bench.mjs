// npm run bench: `qwasm bench` on a model of Qwen3-0.6B's size with random weights. Options are those of `qwasm bench`.
import { join } from 'node:path'
import { root, main } from '../../scripts/tools.mjs'
import { fullSizeModel, prepareQwasm } from './install.mjs'

await main(async () => {
  await prepareQwasm()
  const folder = await fullSizeModel()
  process.argv = [process.argv[0], join(root, 'dist/cli.js'), 'bench', '--model', folder, ...process.argv.slice(2)]
  await import('../../dist/cli.js')
})
