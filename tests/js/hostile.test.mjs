// Loading a model from servers that misbehave: the right model or an error with a code, and never a cache that is worse for it.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, it } from 'node:test'
import { loadModel } from '../../dist/node.js'
import { expectedBits, goldenCases, root, wordHash } from '../support/golden.mjs'
import { startHostileServer } from '../support/hostile-server.mjs'
import { MISBEHAVIOURS } from '../support/misbehaviours.mjs'
import { workerAfter } from './support/broken-parts.mjs'
import { demo, temporaryFolder } from './support/models.mjs'

// In the worker, time goes 200 times faster: a stall of 30 s takes 150 ms.
const hurried = workerAfter(`const { setTimeout, Date: { now } } = globalThis
  const start = now()
  globalThis.setTimeout = (run, ms, ...rest) => setTimeout(run, ms / 200, ...rest)
  Date.now = () => start + 200 * (now() - start)`)

const [{ name, ids, positions }] = goldenCases('tests/golden/demo')

/** Loads the demo model in exact mode, without threads, which take longer to start, and checks its logits bit for bit. */
async function loadsRightly(url, options) {
  const model = await loadModel(url, { dtype: 'exact', variant: 'simd-single', workerUrl: hurried, ...options })
  try {
    assert.equal(wordHash(await model.logits(ids, { positions })), expectedBits('demo', name))
  } finally {
    await model.dispose()
  }
}

const usualCache = process.env.XDG_CACHE_HOME
after(() => {
  if (usualCache === undefined) delete process.env.XDG_CACHE_HOME
  else process.env.XDG_CACHE_HOME = usualCache
})

/** Runs a test with an empty cache of its own. */
async function withEmptyCache(test) {
  const folder = mkdtempSync(join(tmpdir(), 'qwasm-cache-'))
  process.env.XDG_CACHE_HOME = folder // a worker gets the environment of its start
  try {
    await test()
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

const folder = temporaryFolder(demo)
execFileSync(process.execPath, [join(root, 'dist/cli.js'), 'manifest', folder], { stdio: 'ignore' })
const integrity = JSON.parse(readFileSync(join(folder, 'qwasm-manifest.json'), 'utf8'))

describe('a server', () => {
  for (const { name, tells, outcome, behave, seenBy } of MISBEHAVIOURS) {
    it(`(${name}) ${tells}: ${outcome.join(' or ')}; then a good one loads at once`, { timeout: 60_000 }, () =>
      withEmptyCache(async () => {
        const options = seenBy === 'integrity' ? { integrity } : {}
        const server = await startHostileServer(folder, behave)
        try {
          const met = await loadsRightly(server.url, options).then(
            () => 'right',
            (error) => error
          )
          assert.ok(outcome.includes(met.code ?? met), `${met.code}: ${met.message ?? met}`)
          server.behave = () => undefined
          await loadsRightly(server.url, options)
        } finally {
          await server.close()
        }
      })
    )
  }
})
