// What is measured inside a page: wllama, node-llama-wasm and qwasm. Each takes the address of its model and the shape.
import { better, measureQwasm, promptText } from './shape.mjs'

const rate = (tokens, ms) => 1000 * tokens / ms

export async function qwasm(url, shape) {
  const { loadModel } = await import('/dist/browser.js')
  return measureQwasm(loadModel, new URL(url, location.origin), shape)
}

export async function wllama(url, { promptTokens, decodeTokens, threads, times }) {
  const { Wllama } = await import('/node_modules/@wllama/wllama/esm/index.js')
  const engine = new Wllama({ default: '/node_modules/@wllama/wllama/esm/wasm/wllama.wasm' }, { suppressNativeLog: true })
  const file = await (await fetch(url)).blob()
  await engine.loadModel([file], { n_ctx: 1024, n_threads: threads, n_batch: 512, n_gpu_layers: 0 })
  const options = { temperature: 0, stream: true, ignore_eos: true, cache_prompt: false }
  const run = async (prompt, maxTokens) => {
    const start = performance.now()
    const times = []
    for await (const _chunk of await engine.createCompletion({ prompt, max_tokens: maxTokens, ...options })) times.push(performance.now())
    return { firstMs: times[0] - start, restMs: times.at(-1) - times[0], rest: times.length - 1 }
  }
  await run('hello', 4)
  let best
  for (let time = 0; time < times; time++) {
    const long = await run(promptText(promptTokens, time), 1)
    const short = await run('once', decodeTokens + 1)
    best = better(best, { prefill: rate(promptTokens, long.firstMs), decode: rate(short.rest, short.restMs) })
  }
  return best
}

export async function nodeLlamaWasm(url, { promptTokens, decodeTokens, threads, times }) {
  const { loadModel } = await import('/node_modules/@fugood/node-llama-wasm/index.js')
  const engine = await loadModel({
    model: new URL(url, location.origin).href,
    n_ctx: 1024, n_batch: 512, n_gpu_layers: 0, n_threads: threads,
    wasm: { cacheDownloads: false, maxThreads: threads },
  })
  const run = async (prompt, maxTokens) =>
    (await engine.completion({ prompt, n_predict: maxTokens, temperature: 0, ignore_eos: true })).timings
  let best
  for (let time = 0; time < times; time++) {
    const { prompt_per_second: prefill } = await run(promptText(promptTokens, time), 1)
    const { predicted_per_second: decode } = await run('once', decodeTokens + 1)
    best = better(best, { prefill, decode })
  }
  return best
}
