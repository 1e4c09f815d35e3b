// What every contestant is measured by, and how qwasm is: the same lines in Node.js and in a page.

/** Prefill of a prompt, and decoding after a prompt of one token; the best of some times, on so many threads. */
export const SHAPE = { promptTokens: 256, decodeTokens: 48, threads: 2, times: 3 }

/** The better of two measurements, rate by rate. */
export function better(a, b) {
  return { ...a, ...b, prefill: Math.max(a?.prefill ?? 0, b.prefill), decode: Math.max(a?.decode ?? 0, b.decode) }
}

/** A prompt as text, for those who take no ids: one token a word. Another `time` begins with another word, so that nothing is cached. */
export function promptText(tokens, time) {
  const words = ['the', 'cat', 'sat', 'on', 'mat', 'and', 'dog', 'ran']
  return Array.from({ length: tokens }, (_, i) => words[(7 * i + time) % words.length]).join(' ')
}

/** The same as ids. */
export function promptIds(tokens, time) {
  return Array.from({ length: tokens }, (_, i) => 1000 + time + (7919 * i) % 45_000)
}

/** Measures qwasm: rates in tokens per second, and the module and threads that were used. */
export async function measureQwasm(loadModel, source, { promptTokens, decodeTokens, threads, times, ...options }) {
  const model = await loadModel(source, { contextLength: 1024, threads, ...options })
  const timings = async (ids, maxTokens) =>
    (await model.generate(ids, { maxTokens, temperature: 0, ignoreEos: true }).result()).timings
  try {
    let best = { detail: `${model.info.variant}, ${model.info.threads} threads` }
    for (let time = 0; time < times; time++) {
      const { prefillMs } = await timings(promptIds(promptTokens, time), 1)
      // The first token is drawn from the prompt's logits: what is timed runs the model once for each token after it.
      const { decodeMs } = await timings([1000], decodeTokens + 1)
      best = better(best, { prefill: 1000 * promptTokens / prefillMs, decode: 1000 * decodeTokens / decodeMs })
    }
    return best
  } finally {
    await model.dispose()
  }
}
