// npm test: sets up, builds, runs every test and check. All stages run; one that fails makes the whole fail.
import { spawn } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { build } from './build.mjs'
import { setup } from './setup.mjs'
import { SetupError, main, root } from './tools.mjs'

/** Runs a program that talks to the terminal itself; true where it succeeds. */
function succeeds(command, args, env = {}) {
  return new Promise(resolve => {
    const child = spawn(command, args, { cwd: root, env: { ...process.env, ...env }, stdio: ['ignore', 'inherit', 'inherit'] })
    child.on('error', error => {
      console.error(error.message)
      resolve(false)
    })
    child.on('close', code => resolve(code === 0))
  })
}

function filesIn(folder, ending) {
  const files = readdirSync(join(root, folder)).filter(name => name.endsWith(ending)).sort()
  if (files.length === 0) throw new SetupError(`There is no ${ending} file in ${folder}: nothing would be tested.`)
  return files.map(name => join(folder, name))
}

// One test file at a time: the tests use threads themselves, and a machine may have two cores.
const NODE_TEST = ['--test', '--test-concurrency=1', '--test-reporter=spec']

// What tests load by URL is kept here, not among the user's own models.
const CACHE = { XDG_CACHE_HOME: join(root, 'build/test-cache') }

const SANITIZERS = {
  ASAN_OPTIONS: 'detect_leaks=1:allocator_may_return_null=1',
  UBSAN_OPTIONS: 'halt_on_error=1:print_stacktrace=1',
}

const STAGES = {
  checks: async () => {
    for (const file of filesIn('scripts', '.mjs').filter(path => /check-[a-z-]+\.mjs$/.test(path))) {
      if (!await succeeds(process.execPath, [file])) return false
    }
    return true
  },
  native: async () =>
    await succeeds(join(root, 'build/native/tests/core/qwasm_tests'), ['--gtest_brief=1'], SANITIZERS) &&
    await succeeds(join(root, 'build/native/tests/fuzz/qwasm_fuzz_replay'), [], SANITIZERS),
  node: () => succeeds(process.execPath, [...NODE_TEST, ...filesIn('tests/js', '.test.mjs')], CACHE),
  browser: () => succeeds(process.execPath, [...NODE_TEST, ...filesIn('tests/browser', '.test.mjs')]),
  package: () => succeeds(process.execPath, [...NODE_TEST, ...filesIn('tests/package', '.test.mjs')]),
}

/** The stages named on the command line, or all. */
function chosenStages() {
  const wanted = process.argv.slice(2)
  for (const name of wanted) {
    if (!STAGES[name]) throw new SetupError(`There is no stage ${name}; there are ${Object.keys(STAGES).join(', ')}.`)
  }
  return wanted.length > 0 ? wanted : Object.keys(STAGES)
}

await main(async () => {
  const stages = chosenStages()
  await build({ ...await setup({ forTests: true }), native: stages.includes('native') })
  const failed = []
  for (const name of stages) {
    console.log(`\n==== ${name} ====`)
    const start = Date.now()
    if (!await STAGES[name]()) failed.push(name)
    console.log(`---- ${name} ${failed.includes(name) ? 'FAILED' : 'passed'} after ${((Date.now() - start) / 1000).toFixed(1)} s`)
  }
  if (failed.length > 0) console.log(`\nFailed: ${failed.join(', ')}`)
  console.log(`\nStages: ${stages.length - failed.length} passed, ${failed.length} failed`)
  if (failed.length > 0) process.exitCode = 1
})
