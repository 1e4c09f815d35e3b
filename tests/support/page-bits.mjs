// Runs inside a page: loads a model through the public API and gives, for each case, the hash of its logits' bits and its greedy ids.
// It must stand alone: it travels to the browser as text.

/** `cases`: [{ ids, positions, maxTokens }]; the hash is `wordHash` of golden.mjs. */
export async function computeInPage({ folder, options, cases }) {
  const hash = array => {
    let value = 2166136261
    for (const word of new Uint32Array(array.buffer, array.byteOffset, array.length)) value = Math.imul(value ^ word, 16777619)
    return (value >>> 0).toString(16).padStart(8, '0')
  }
  const { loadModel } = await import('/dist/browser.js')
  const model = await loadModel(new URL(folder, location.origin), options)
  const results = []
  for (const { ids, positions, maxTokens } of cases) {
    const bits = hash(await model.logits(ids, { positions }))
    const greedy = maxTokens > 0 ? (await model.generate(ids, { temperature: 0, maxTokens }).result()).ids : []
    results.push({ bits, greedy })
  }
  const { variant, threads, kernels, why } = model.info
  await model.dispose()
  return { variant, threads, kernels, why, results }
}
