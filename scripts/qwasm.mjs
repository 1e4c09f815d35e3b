// npm run -s qwasm -- …: the command line of the checkout; sets up and builds first where dist/ is missing.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { build } from './build.mjs'
import { setup } from './setup.mjs'
import { VARIANTS, main, root } from './tools.mjs'

const modules = VARIANTS.map(variant => `dist/wasm/qwasm-${variant}.wasm`)
const outputs = ['dist/cli.js', 'dist/worker.node.js', ...modules]

await main(async () => {
  if (!outputs.every(path => existsSync(join(root, path)))) await build(await setup())
  process.argv[1] = join(root, 'dist/cli.js')
  await import('../dist/cli.js')
})
