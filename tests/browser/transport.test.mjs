// The transport in Chromium, from servers of another origin that misbehave: every byte right, or an error with a code.
import assert from 'node:assert/strict'
import { build } from 'esbuild'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { launchChromium } from '../support/browsers.mjs'
import { root } from '../support/golden.mjs'
import { startHostileServer } from '../support/hostile-server.mjs'
import { MISBEHAVIOURS } from '../support/misbehaviours.mjs'
import { watchedPage } from '../support/site.mjs'

const SIZE = 300_000
const CONFIG = '{"architectures": ["Qwen3ForCausalLM"]}'
const folder = mkdtempSync(join(tmpdir(), 'qwasm-transport-'))
let browser, page, site

before(async () => {
  const contents = [...['url', 'retry', 'source'].map(name => `js/src/loader/${name}.ts`), 'tests/support/right-loader.mjs']
    .map(path => `export * from './${path}'`).join('\n')
  await build({ absWorkingDir: root, bundle: true, format: 'esm', stdin: { contents, resolveDir: root }, outfile: join(folder, 'bundle.js') })
  writeFileSync(join(folder, 'page.html'), '<!doctype html><title>transport</title>')
  writeFileSync(join(folder, 'config.json'), CONFIG)
  const weights = Uint8Array.from({ length: SIZE }, (_, i) => (i * 2654435761) >>> 24)
  weights.set([64, 0, 0, 0, 0, 0, 0, 0, 0x7b])
  writeFileSync(join(folder, 'model.safetensors'), weights)
  site = await startHostileServer(folder, ({ file }, { headers }) =>
    void (headers['Content-Type'] = file.endsWith('.html') ? 'text/html' : 'text/javascript'))
  browser = await launchChromium()
  page = await watchedPage(browser)
  await page.goto(`${site.url}page.html`)
})
after(async () => {
  await browser?.close()
  await site?.close()
  rmSync(folder, { recursive: true, force: true })
})

/** Runs in the page: what came of loading each file; every byte is compared with the right one. */
async function loadInPage({ url, config, usualSize }) {
  const transport = await import('/bundle.js')
  const { UrlFolder, PATIENCE, loadFile, quickly } = transport
  const source = new UrlFolder(url, { patience: quickly(PATIENCE, { stall: 150 }) })
  const header = [64, 0, 0, 0, 0, 0, 0, 0, 0x7b]
  const right = {
    'config.json': i => config.charCodeAt(i),
    'model.safetensors': i => header[i] ?? Math.floor((i * 2654435761) % 2 ** 32 / 2 ** 24),
  }
  const met = []
  for (const file of Object.keys(right)) {
    const take = (part, position) => {
      const wrong = part.findIndex((byte, i) => byte !== right[file](position + i))
      if (wrong >= 0) throw new Error(`${file}: the byte at ${position + wrong} is wrong`)
    }
    try {
      met.push(`${await loadFile(transport, source, file, { take, usualSize })} bytes`)
    } catch (error) {
      met.push(error.code ?? String(error))
    }
  }
  await source.close()
  return met
}

describe('in Chromium, a server', () => {
  for (const { name, tells, outcome, behave, seenBy } of MISBEHAVIOURS) {
    if (seenBy !== 'transport') continue
    it(`(${name}) ${tells}: ${outcome.join(' or ')}`, { timeout: 30_000 }, async () => {
      const server = await startHostileServer(folder, behave)
      try {
        const met = await page.evaluate(loadInPage, { url: server.url, config: CONFIG, usualSize: SIZE })
        const errors = met.filter((what, i) => what !== `${[CONFIG.length, SIZE][i]} bytes`)
        for (const error of errors) assert.ok(outcome.includes(error), error)
        if (errors.length === 0) assert.ok(outcome.includes('right'))
      } finally {
        await server.close()
      }
    })
  }
})
