// A browser that is killed while it loads: the next one goes on with what was kept, and fetches at most a chunk twice.
import assert from 'node:assert/strict'
import { statSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, it } from 'node:test'
import { killChromiumOf, launchChromiumOn } from '../support/browsers.mjs'
import { expectedBits, goldenCases, root } from '../support/golden.mjs'
import { startHostileServer } from '../support/hostile-server.mjs'
import { startSite } from '../support/site.mjs'

const POINTS = 10
const CHUNK = 2 ** 19
const FOLDER = join(root, 'models/demo')
const WEIGHTS = statSync(join(FOLDER, 'model.safetensors')).size
const [golden] = goldenCases('tests/golden/demo')

let site, server
before(async () => {
  site = await startSite({ policy: null }) // the model comes from another origin
  server = await startHostileServer(FOLDER)
})
after(async () => {
  await site?.close()
  await server?.close()
})

/** Runs in a page and must stand alone: loads one range at a time, and gives the bits of the logits. */
async function loadInPage({ url, ids, positions }) {
  const { loadModel } = await import('/dist/browser.js')
  const model = await loadModel(url, { dtype: 'q4', maxRequests: 1 })
  const logits = await model.logits(ids, { positions })
  let hash = 2166136261
  for (const word of new Uint32Array(logits.buffer)) hash = Math.imul(hash ^ word, 16777619)
  return (hash >>> 0).toString(16).padStart(8, '0')
}

async function load(context) {
  const page = await context.newPage()
  await page.goto(`${site.url}blank/`)
  return page.evaluate(loadInPage, { url: server.url, ids: golden.ids, positions: golden.positions })
}

for (let point = 0; point < POINTS; point++) {
  it(`is killed when ${point} to ${point + 1} tenths of the model have come`, async () => {
    const profile = await mkdtemp(join(tmpdir(), 'qwasm-profile-'))
    try {
      const begun = server.sent
      server.bandwidth = 4e6 // slow enough that what was sent has arrived
      const killed = await launchChromiumOn(profile)
      const loading = load(killed).catch(() => 'killed')
      await server.reached(begun + Math.floor((WEIGHTS * (point + Math.random())) / POINTS))
      await killChromiumOf(profile)
      await loading
      await new Promise(resolve => setTimeout(resolve, 300)) // until the server has noticed: at full speed it would send on meanwhile
      server.bandwidth = Infinity
      const next = await launchChromiumOn(profile)
      assert.equal(await load(next), expectedBits('demo q4', golden.name))
      await next.close()
      const small = 300_000 // config.json, tokenizer.json and the like
      // Of what was sent last, a chunk may have been on its way, one in part, and one not yet written down.
      const sent = server.sent - begun
      assert.ok(sent <= WEIGHTS + small + 3 * CHUNK, `${sent} bytes were sent for ${WEIGHTS} bytes of weights`)
    } finally {
      await killChromiumOf(profile)
      await rm(profile, { recursive: true, force: true, maxRetries: 10 })
    }
  })
}
