// Everybody who is measured: a title, what must be installed first, and how one measurement is taken. All but the pages run as processes.
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { SMALL_MODEL } from '../../scripts/setup.mjs'
import { root } from '../../scripts/tools.mjs'
import { launchChromium } from '../support/browsers.mjs'
import { startSite } from '../support/site.mjs'
import { BENCH, NODE_24, ggufFile, installLlamaCpp, installNpmPeers } from './install.mjs'

const NODE_LLAMA_CPP = join(BENCH, 'node_modules/node-llama-cpp/dist/index.js')
const GGUF_FORMATS = { q4: 'Q4_0', q8: 'Q8_0' }

/** Runs a program of this folder; its last line of output is JSON. Throws with the end of what it said where it fails. */
async function measureProcess(command, script, ...args) {
  const child = spawn(command, [join(root, 'tests/bench', script), ...args], { stdio: ['ignore', 'pipe', 'pipe'] })
  const ended = new Promise((resolve, reject) => child.on('error', reject).on('close', resolve))
  const [output, complaints, code] = await Promise.all([text(child.stdout), text(child.stderr), ended])
  if (code !== 0) throw new Error(`${script} ended with ${code}: ${(complaints || output).trim().split('\n').slice(-5).join('\n')}`)
  return JSON.parse(output.trim().split('\n').at(-1))
}

/** Calls a function of in-page.mjs in a new Chromium, with a model that its page's server has at `url`. */
async function measurePage(name, url, folder, shape) {
  const mounts = {
    '/bench/': join(root, 'tests/bench'), '/node_modules/': join(BENCH, 'node_modules'), '/gguf/': BENCH, '/small/': SMALL_MODEL.folder, '/full-size/': folder,
  }
  const site = await startSite({ mounts, policy: null }) // some peers start their workers from blobs
  const browser = await launchChromium()
  try {
    const page = await browser.newPage()
    await page.goto(`${site.url}blank/`)
    const call = async ([functionName, ...args]) => (await import('/bench/in-page.mjs'))[functionName](...args)
    const result = await page.evaluate(call, [name, url, shape])
    return { ...result, detail: [`Chromium ${browser.version().split('.')[0]}`, result.detail].filter(Boolean).join(', ') }
  } finally {
    await browser.close()
    await site.close()
  }
}

// 'stored' is another model, for everybody the same file: SmolLM2-135M-Instruct in Q4_1.
const SMALL = join(SMALL_MODEL.folder, SMALL_MODEL.file)
const gguf = (folder, dtype) => (dtype === 'stored' ? SMALL : ggufFile(folder, GGUF_FORMATS[dtype]))
const ggufUrl = dtype => (dtype === 'stored' ? `/small/${SMALL_MODEL.file}` : `/gguf/qwen3-0.6b-${GGUF_FORMATS[dtype]}.gguf`)
const ownSource = (folder, dtype) => (dtype === 'stored' ? SMALL : folder)

async function prepareGgufPeer(folder, dtype) {
  await installNpmPeers()
  await gguf(folder, dtype)
}

export function measureQwasmIn(node, folder, shape) {
  return measureProcess(node, 'qwasm-node.mjs', folder, JSON.stringify(shape))
}

/** By name: prepare(folder, dtype), then measure(folder, dtype, shape) → { prefill, decode, detail? } in tokens per second. */
export const CONTESTANTS = {
  'llama.cpp': {
    title: 'llama.cpp, compiled for this CPU',
    prepare: async (folder, dtype) => {
      await installLlamaCpp()
      await gguf(folder, dtype)
    },
    measure: async (folder, dtype, shape) =>
      measureProcess(await installLlamaCpp(), 'native.py', await gguf(folder, dtype), JSON.stringify(shape)),
  },
  'node-llama-cpp': {
    title: 'node-llama-cpp, its portable build',
    prepare: prepareGgufPeer,
    measure: async (folder, dtype, shape) =>
      measureProcess(process.execPath, 'node-llama-cpp.mjs', await gguf(folder, dtype), JSON.stringify(shape), NODE_LLAMA_CPP),
  },
  wllama: {
    title: 'wllama',
    prepare: prepareGgufPeer,
    measure: (folder, dtype, shape) => measurePage('wllama', ggufUrl(dtype), folder, shape),
  },
  'node-llama-wasm': {
    title: '@fugood/node-llama-wasm',
    prepare: prepareGgufPeer,
    measure: (folder, dtype, shape) => measurePage('nodeLlamaWasm', ggufUrl(dtype), folder, shape),
  },
  'qwasm-node24': {
    title: 'qwasm, Node.js 24',
    prepare: installNpmPeers,
    measure: (folder, dtype, shape) => measureQwasmIn(NODE_24, ownSource(folder, dtype), { ...shape, dtype }),
  },
  'qwasm-plain': {
    title: `qwasm, plain SIMD, Node.js ${process.versions.node.split('.')[0]}`,
    prepare: () => {},
    measure: (folder, dtype, shape) => measureQwasmIn(process.execPath, ownSource(folder, dtype), { ...shape, dtype, variant: 'simd' }),
  },
  'qwasm-chromium': {
    title: 'qwasm, Chromium',
    prepare: () => {},
    measure: (folder, dtype, shape) => measurePage('qwasm', dtype === 'stored' ? ggufUrl(dtype) : '/full-size/', folder, { ...shape, dtype }),
  },
}
