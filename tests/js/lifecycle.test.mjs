// Loading, rungs, disposing and dying: nothing hangs, nothing is lost, and the process ends when it may.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, describe, it } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { loadModel, loadTokenizer, QwasmError } from '../../dist/node.js'
import { writeBrokenModules } from '../support/broken-modules.mjs'
import { root } from '../support/golden.mjs'
import { startHostileServer } from '../support/hostile-server.mjs'
import { nodeBest, nodeBestSingle, nodeHasRelaxed, nodeVariants, VARIANTS } from '../support/variants.mjs'
import { modulesOfBuild, modulesWith, workerAfter } from './support/broken-parts.mjs'
import { demo, small, temporaryFolder } from './support/models.mjs'

const long = { temperature: 0, ignoreEos: true }
const answer = async (model) => (await model.generate([1, 2, 3], { ...long, maxTokens: 5 }).result()).ids

let expected
async function works(model) {
  const ids = await answer(model)
  expected ??= ids
  assert.deepEqual(ids, expected)
  await model.dispose()
}

describe('threads', () => {
  for (const threads of [1, 2, 3, 4]) {
    it(`may be ${threads}`, async () => {
      const model = await loadModel(small, { threads })
      assert.equal(model.info.threads, threads)
      await works(model)
    })
  }
  it('beyond the pool are clamped', async () => {
    const model = await loadModel(small, { threads: 64 })
    assert.ok(model.info.threads >= 4 && model.info.threads <= 16)
    await works(model)
  })
  it('must be a number', async () => {
    for (const threads of [0, -1, 1.5, NaN, '2'])
      await assert.rejects(loadModel(small, { threads }), { code: 'invalid_argument', message: /threads/ })
  })
})

describe('the rung', () => {
  it('is the best that runs here', async () => {
    const model = await loadModel(small)
    assert.equal(model.info.variant, nodeBest)
    assert.match(model.info.why, nodeHasRelaxed ? /relaxed SIMD and threads/ : /no relaxed SIMD: .*does not have it/)
    await works(model)
  })

  it('is lower without SharedArrayBuffer, with the same tokens, and says why', async () => {
    const model = await loadModel(small, { workerUrl: workerAfter('delete globalThis.SharedArrayBuffer') })
    assert.deepEqual([model.info.variant, model.info.threads], [nodeBestSingle, 1])
    assert.match(model.info.why, /SharedArrayBuffer/)
    await works(model)
  })

  it('is lower on a page that is not isolated', async () => {
    const model = await loadModel(small, { workerUrl: workerAfter('globalThis.crossOriginIsolated = false') })
    assert.equal(model.info.variant, nodeBestSingle)
    assert.match(model.info.why, /COOP/)
    await works(model)
  })

  const refuseMemory = (pages) => `const Memory = WebAssembly.Memory
    WebAssembly.Memory = function (options) { if (options.maximum > ${pages}) throw new RangeError('refused'); return new Memory(options) }`

  it('keeps its threads where only a small memory is granted', async () => {
    const model = await loadModel(small, { workerUrl: workerAfter(refuseMemory(16384)) })
    assert.equal(model.info.variant, nodeBest)
    assert.match(model.info.why, /; memory of only 1 GiB was granted$/)
    await works(model)
  })

  it('is lower where no shared memory is granted', async () => {
    const model = await loadModel(small, { workerUrl: workerAfter(refuseMemory(1000)) })
    assert.equal(model.info.variant, nodeBestSingle)
    assert.match(model.info.why, /memory/)
    await works(model)
  })

  it('can be forced, and is an error where it cannot run', async () => {
    for (const variant of nodeVariants) {
      const model = await loadModel(small, { variant })
      assert.deepEqual([model.info.variant, model.info.why], [variant, 'it was asked for'])
      await works(model)
    }
    const workerUrl = workerAfter('delete globalThis.SharedArrayBuffer')
    await assert.rejects(loadModel(small, { variant: 'simd', workerUrl }), { code: 'environment', message: /SharedArrayBuffer/ })
    await assert.rejects(loadModel(small, { variant: 'turbo' }), { code: 'invalid_argument', message: /turbo/ })
  })

  it('needs SIMD', async () => {
    const workerUrl = workerAfter('WebAssembly.validate = () => false')
    await assert.rejects(loadModel(small, { workerUrl }), { code: 'environment', message: /SIMD/ })
  })
})

describe('loading', () => {
  it('works 50 times over, each model disposed: no thread is left, and memory stays where it was', async () => {
    setFlagsFromString('--expose-gc')
    const collectGarbage = runInNewContext('gc')
    const rounds = async (count) => {
      let weightBytes = 0
      for (let round = 0; round < count; round++) {
        const model = await loadModel(demo, { dtype: 'exact', threads: 1 + (round % 3) })
        assert.equal((await answer(model)).length, 5)
        weightBytes = model.info.weightBytes
        await model.dispose()
      }
      collectGarbage()
      return { weightBytes, threads: readdirSync('/proc/self/task').length, memory: process.memoryUsage().rss }
    }
    const before = await rounds(10)
    const after = await rounds(40)
    console.log(`${before.memory} bytes after 10 rounds, ${after.memory} after 50, threads ${before.threads} and ${after.threads}`)
    assert.ok(after.memory - before.memory < after.weightBytes, `${before.memory} bytes after 10 rounds, ${after.memory} after 50`)
    assert.equal(after.threads, before.threads)
  })

  it('works while another load runs', async () => {
    const models = await Promise.all([
      loadModel(small),
      loadModel(demo, { threads: 1 }),
      loadModel(small, { variant: 'simd-single' }),
    ])
    assert.deepEqual(
      models.map(({ info }) => info.vocabSize),
      [models[0].info.vocabSize, 2048, models[0].info.vocabSize]
    )
    for (const model of models.toSpliced(1, 1)) await works(model)
    await models[1].dispose()
  })

  it('from a URL and from files gives the same model', async () => {
    const server = await startHostileServer(small)
    await works(await loadModel(server.url))
    await works(await loadModel(new URL(server.url), { maxRequests: 1 }))
    await server.close()
    const names = ['config.json', 'generation_config.json', 'model.safetensors']
    await works(await loadModel(names.map((name) => new File([readFileSync(join(small, name))], name))))
  })

  it('tells its progress', async () => {
    const server = await startHostileServer(demo)
    const reports = []
    const model = await loadModel(server.url, { dtype: 'exact', onProgress: (progress) => reports.push(progress) })
    const last = reports.at(-1)
    assert.equal(last.phase, 'ready')
    assert.equal(last.loaded, last.total)
    assert.ok(last.total > 6e6 && last.total <= model.info.weightBytes)
    await model.dispose()
    await server.close()
  })

  it('can be aborted at any time', async () => {
    let asked = () => {}
    const server = await startHostileServer(small, ({ file, count }) => {
      if (count === 3) asked()
      return file.endsWith('safetensors') ? { status: 200, headers: { 'Content-Length': 1e6 } } : undefined // a body that never comes
    })
    await assert.rejects(loadModel(server.url, { signal: AbortSignal.abort() }), { name: 'AbortError' })
    const controller = new AbortController()
    asked = () => controller.abort()
    await assert.rejects(loadModel(server.url, { signal: controller.signal }), { name: 'AbortError' })
    await server.close()
    await works(await loadModel(small))
  })

  it('refuses what is no source, and unknown options', async () => {
    for (const source of [undefined, null, 7, '', {}, []])
      await assert.rejects(loadModel(source), { code: 'invalid_argument' }, String(source))
    await assert.rejects(loadModel(small, { thread: 2 }), { code: 'invalid_argument', message: /'thread'.*threads/ })
    await assert.rejects(loadModel(small, { dtype: 'q3' }), { code: 'invalid_argument', message: /q3/ })
    await assert.rejects(loadModel(small, 7), { code: 'invalid_argument' })
    await assert.rejects(loadModel('/nowhere'), { code: 'missing', message: /\/nowhere/ })
    await assert.rejects(loadModel('model.gguf'), { code: 'missing' })
  })

  it('names the file that is missing, and where it was looked for', async () => {
    const server = await startHostileServer(join(root, 'core'))
    await assert.rejects(loadModel(server.url), (error) => {
      assert.equal(error.code, 'missing')
      return error.message.includes('config.json') && error.message.includes(server.url)
    })
    await server.close()
  })
})

describe('dispose', () => {
  it('rejects what runs and what waits, and all later calls', async () => {
    const model = await loadModel(demo)
    const running = model.generate('Once', long)
    const waiting = [
      running.result(),
      model.generate('Once').result(),
      model.logits([1, 2]),
      model.chat([{ role: 'user', content: 'x' }]).result(),
    ]
    const rejected = waiting.map((promise) => assert.rejects(promise, { code: 'disposed' }))
    for await (const _piece of running) break
    await Promise.all([model.dispose(), model.dispose(), ...rejected])
    await assert.rejects(model.tokenize('a'), { code: 'disposed' })
    await assert.rejects(model.generate('a').result(), { code: 'disposed' })
    await model.dispose()
  })

  it('of a tokenizer works the same', async () => {
    const tokenizer = await loadTokenizer(demo)
    await tokenizer.dispose()
    await assert.rejects(tokenizer.tokenize('a'), { code: 'disposed' })
  })
})

describe('death', () => {
  const dies = async (model) => {
    const waiting = [model.generate([1, 2], long).result(), model.generate([3]).result(), model.logits([1, 2])]
    for (const promise of waiting) await assert.rejects(promise, { code: 'dead', message: /loaded again/ })
    await assert.rejects(
      model.logits([1]),
      (error) => error instanceof QwasmError && error.code === 'dead' && /loaded again/.test(error.message)
    )
    await model.dispose()
  }

  it('by a trap rejects everything, and says that a reload is needed', async () => {
    const wasmUrl = modulesWith(`const trap = () => { throw new WebAssembly.RuntimeError('unreachable') }
      Object.defineProperty(module, '_qw_step_many', { get: () => trap, set: () => {} }) // the glue sets it again at the first call`)
    for (const variant of nodeVariants) await dies(await loadModel(small, { wasmUrl, variant }))
  })

  it('by a trap in a thread does the same', async () => {
    const wasmUrl = join(temporaryFolder(), 'wasm')
    writeBrokenModules(wasmUrl, 'traps-at-its-first-work')
    // Threads work while weights are loaded too; a model this small may be loaded before they have got any of it.
    const loaded = await loadModel(small, { wasmUrl, dtype: 'exact', threads: 2 }).catch((error) => error)
    if (loaded instanceof QwasmError) assert.deepEqual([loaded.code, /loaded again/.test(loaded.message)], ['dead', true])
    else await dies(loaded)
  })

  it('of a thread while it is started rejects the load', async () => {
    const wasmUrl = join(temporaryFolder(), 'wasm')
    writeBrokenModules(wasmUrl, 'throws-at-its-start')
    await assert.rejects(loadModel(small, { wasmUrl, threads: 2 }), { code: 'dead', message: /thread/ })
    await works(await loadModel(small))
  })

  it('of the worker does the same', async () => {
    const exit = "parentPort.on('message', ({ method }) => { if (method === 'generate') setTimeout(() => process.exit(7), 20) })"
    const model = await loadModel(small, { workerUrl: workerAfter("import { parentPort } from 'node:worker_threads'", exit) })
    const running = model.generate(Array(30).fill(1), long)
    await assert.rejects(Promise.all([running.result(), model.logits(Array(500).fill(1))]), {
      code: 'dead',
      message: /exit code 7/,
    })
    await model.dispose()
  })

  it('of a worker that cannot be loaded does not hang', async () => {
    await assert.rejects(loadModel(small, { workerUrl: '/nowhere/worker.js' }), { code: 'dead', message: /nowhere/ })
    await assert.rejects(loadModel(small, { wasmUrl: '/nowhere/' }), { code: 'environment', message: /nowhere/ })
  })

  it('does not come to a module of another build: its file is refused by name before it runs', async () => {
    for (const ending of ['mjs', 'wasm']) {
      await assert.rejects(loadModel(small, { wasmUrl: modulesOfBuild('0dd', ending) }), {
        code: 'version_mismatch',
        message: new RegExp(`build 0\\.1\\.0\\+\\w{12}, but \\S+\\.${ending} is of 0\\.1\\.0\\+\\w{9}0dd; an old file may be cached`),
      })
    }
    const files = modulesWith("throw new Error('it ran')")
    for (const variant of VARIANTS) {
      const glue = join(files, `qwasm-${variant}.mjs`)
      writeFileSync(glue, readFileSync(glue, 'utf8').replace(/export \{ build \}.*/, ''))
    }
    await assert.rejects(loadModel(small, { wasmUrl: files }), { code: 'version_mismatch', message: /\.mjs is of an unknown one;/ })
  })
})

describe('the process', () => {
  const children = []
  after(() => children.forEach((child) => child.kill()))

  /** Runs a script against the package; its exit code, output and seconds. */
  function run(script) {
    const code = `import { loadModel } from '${join(root, 'dist/node.js')}'\n${script}`
    const child = spawn(process.execPath, ['--input-type=module', '-e', code], {
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: 20_000,
    })
    children.push(child)
    let output = ''
    child.stdout.on('data', (data) => (output += data))
    child.stderr.on('data', (data) => (output += data))
    return new Promise((resolve) => child.on('close', (code) => resolve({ code, output })))
  }

  it('ends by itself after dispose, and without it where nothing is pending', async () => {
    for (const end of ['await model.dispose()', '']) {
      const { code, output } = await run(`const model = await loadModel('${small}')
        const { ids } = await model.generate([1, 2], { maxTokens: 3, ignoreEos: true }).result()
        console.log(ids.length)
        ${end}`)
      assert.deepEqual([output.trim(), code], ['3', 0])
    }
  })

  it('goes on while a call is pending', async () => {
    const { output, code } = await run(`const model = await loadModel('${small}')
      model.logits(Array(300).fill(1), { positions: 'last' }).then(({ length }) => console.log(length > 0))`)
    assert.deepEqual([output.trim(), code], ['true', 0])
  })

  it('is not brought down by a stream whose error nobody takes', async () => {
    const { output, code } =
      await run(`const model = await loadModel('${small}'); model.generate('text'); model.generate([1], { seed: -1 })
      for await (const piece of model.generate([1], { maxTokens: 1 })); console.log('ok')`)
    assert.deepEqual([output.trim(), code], ['ok', 0])
  })

  it('importing the entries touches no global of the other platform', async () => {
    for (const entry of ['browser', 'node']) {
      const { output, code } =
        await run(`for (const name of ['window', 'document', 'location', 'Worker', 'SharedArrayBuffer', 'navigator']) {
          Object.defineProperty(globalThis, name, { get() { throw new Error('touched ' + name) } })
        }
        const { loadModel: load } = await import('${join(root, 'dist')}/${entry}.js?again')
        console.log(typeof load)`)
      assert.deepEqual([output.trim(), code], ['function', 0])
    }
  })
})
