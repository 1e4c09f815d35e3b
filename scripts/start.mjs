// npm start: sets up, builds, and serves the demo page. Options are those of scripts/serve.mjs.
import { build } from './build.mjs'
import { serveFromCommandLine } from './serve.mjs'
import { setup } from './setup.mjs'
import { main } from './tools.mjs'

await main(async () => {
  await build(await setup())
  await serveFromCommandLine()
})
