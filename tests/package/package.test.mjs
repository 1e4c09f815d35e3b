// The package as it is published: what linters say of it, what its names lead to, its types, and that importing it does nothing.
import { checkPackage, createPackageFromTarballData } from '@arethetypeswrong/core'
import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { pathToFileURL } from 'node:url'
import { publint } from 'publint'
import { root } from '../support/golden.mjs'
import { VARIANTS } from '../support/variants.mjs'
import { makeProject } from './support/project.mjs'

let project

before(() => {
  project = makeProject()
})
after(() => project?.remove())

/** Runs a script in the project's folder; its output. */
const run = (...args) => execFileSync(process.execPath, args, { cwd: project.folder, encoding: 'utf8' }).trim()

describe('the tarball', () => {
  it('is clean for publint, strictly', async () => {
    const { messages } = await publint({ pkgDir: project.qwasm, pack: false, strict: true })
    assert.deepEqual(messages, [])
  })

  it('has types that every kind of resolution finds and that tell the right module format', async () => {
    const tarball = createPackageFromTarballData(new Uint8Array(project.tarball))
    // Scripts and modules that have an entry so that a build can take their address; nobody imports them.
    const addresses = ['./worker.browser.js', './worker.node.js', './isolation.js', './wasm/*']
    const { types, problems } = await checkPackage(tarball, { excludeEntrypoints: addresses })
    assert.equal(types.kind, 'included')
    assert.deepEqual(problems, [])
  })

  it('has a file for every name that it exports', () => {
    const { resolve } = createRequire(join(project.folder, 'package.json'))
    const files = VARIANTS.flatMap((variant) => [`wasm/qwasm-${variant}.mjs`, `wasm/qwasm-${variant}.wasm`])
    for (const name of ['worker.browser.js', 'worker.node.js', 'isolation.js', ...files]) {
      assert.equal(resolve(`qwasm/${name}`), join(project.qwasm, 'dist', name))
      assert.ok(existsSync(resolve(`qwasm/${name}`)), name)
    }
    assert.equal(resolve('qwasm'), join(project.qwasm, 'dist/node.cjs'))
    assert.equal(resolve('qwasm/openai'), join(project.qwasm, 'dist/openai.cjs'))
    for (const [name, file] of Object.entries({ qwasm: 'node.js', 'qwasm/openai': 'openai.js' })) {
      const url = pathToFileURL(join(project.qwasm, 'dist', file)).href
      assert.equal(run('--input-type=module', '-e', `console.log(import.meta.resolve('${name}'))`), url)
    }
  })

  it('type-checks in a strict project of ES modules and of CommonJS', () => {
    const use = `async function use(): Promise<number[]> {
      const model = await loadModel('models/demo', { dtype: 'q4', onProgress: ({ phase }) => void (phase satisfies string) })
      const error: QwasmErrorCode = new QwasmError('dead', 'text').code
      // @ts-expect-error: there is no such dtype
      await loadModel('models/demo', { dtype: 'q5' })
      const openai: OpenAI = createOpenAI(model)
      for await (const { choices } of await openai.chat.completions.create({ messages: [], stream: true })) void choices[0]?.delta.content
      return (await model.chat([{ role: 'user', content: error }]).result()).ids
    }
    void use\n`
    const imports = `import { loadModel, QwasmError, type QwasmErrorCode } from 'qwasm'\nimport { createOpenAI, type OpenAI } from 'qwasm/openai'\n`
    for (const name of ['use.mts', 'use.cts']) writeFileSync(join(project.folder, name), imports + use)
    const options = ['--noEmit', '--strict', '--module', 'nodenext', '--target', 'es2022', '--lib', 'es2023,dom', '--types', '']
    const tsc = join(root, 'node_modules/typescript/bin/tsc')
    const { status, stdout } = spawnSync(process.execPath, [tsc, ...options, 'use.mts', 'use.cts'], { cwd: project.folder, encoding: 'utf8' })
    assert.equal(status, 0, stdout)
  })
})

describe('importing the package', () => {
  // A server that renders pages has none of these, or has them in part; whoever touches them while being imported fails there.
  const GLOBALS = ['window', 'document', 'self', 'location', 'navigator', 'Worker', 'SharedArrayBuffer', 'WebAssembly', 'fetch', 'MessageChannel', 'sessionStorage']
  // Node.js itself reads some when it loads its own module of workers, so that one is loaded before.
  const traps = `process.getBuiltinModule('node:worker_threads')
  for (const name of ${JSON.stringify(GLOBALS)}) {
    Object.defineProperty(globalThis, name, { configurable: true, get() { throw new Error('touched ' + name) } })
  }`

  it('touches nothing of a browser, and starts nothing: the process ends by itself', () => {
    const names = 'LoadController,QwasmError,caches,filesFromDrop,inspect,loadModel,loadTokenizer'
    for (const entry of ['browser.js', 'node.js']) {
      const url = pathToFileURL(join(project.qwasm, 'dist', entry)).href
      const script = `${traps}\nconsole.log(Object.keys(await import(${JSON.stringify(url)})).sort().join())`
      assert.equal(run('--input-type=module', '-e', script), names, entry)
    }
    const script = `${traps}\nconsole.log(Object.keys(require('qwasm')).sort().join())`
    assert.equal(run('--input-type=commonjs', '-e', script), names)
    const openai = `${traps}\nconsole.log(Object.keys(await import('qwasm/openai')).sort().join(), Object.keys(require('qwasm/openai')).sort().join())`
    const both = `import { createRequire } from 'node:module'\nconst require = createRequire(process.cwd() + '/x.js')\n${openai}`
    assert.equal(run('--input-type=module', '-e', both), 'OpenAIError,createOpenAI OpenAIError,createOpenAI')
  })

  it('evaluates no text as code, and names no other host', () => {
    for (const name of ['browser.js', 'node.js', 'node.cjs', 'openai.js', 'openai.cjs', 'worker.browser.js', 'worker.node.js', 'isolation.js']) {
      const text = readFileSync(join(project.qwasm, 'dist', name), 'utf8')
      assert.doesNotMatch(text, /\beval\(|\bnew Function\b|\bimportScripts\(/, name)
    }
  })
})
