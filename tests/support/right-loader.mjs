// What a right loader does with a source, in few lines, for tests of the transport in Node.js and in browsers.

/** Patience whose clock goes on only by waiting, which takes no time; `waits` tells what was waited for. */
export function quickly(patience, more = {}) {
  let clock = 1_700_000_000_000
  const waits = []
  const sleep = async ms => {
    waits.push(ms)
    clock += ms
    await new Promise(resolve => setTimeout(resolve, 1))
  }
  return { ...patience, now: () => clock, sleep, random: () => 1, waits, ...more }
}

/**
 * Reads a file: weights by its state first and then several ranges at a time, all else whole; and once more where the file changed.
 * `take(part, position)` gets every byte; the result is the count of bytes. `transport` has the exports of loader/source.ts.
 */
export async function loadFile(transport, source, file, { take, usualSize, restarts = 2 }) {
  const { BEGINNING_BYTES, SourceChanged, refuseForeign } = transport
  const read = async (offset, length) => {
    const beginning = []
    let position = offset
    const state = await source.read(file, offset, length, part => {
      take(part, position)
      if (position < BEGINNING_BYTES) beginning.push(...part.subarray(0, BEGINNING_BYTES))
      position += part.length
    })
    if (offset === 0) refuseForeign(source.place(file), file, new Uint8Array(beginning), state)
    return position - offset
  }
  try {
    const state = await source.stat(file)
    if (state === 'missing') throw Object.assign(new Error(`${file} is missing`), { code: 'missing' })
    if (!file.endsWith('.safetensors')) return await read(0, 0)
    const step = Math.max(BEGINNING_BYTES, Math.ceil((state.size < 0 ? usualSize : state.size) / 5))
    const counts = [await read(0, step), ...await Promise.all([1, 2, 3, 4].map(part => read(part * step, step)))]
    return counts.reduce((sum, count) => sum + count, 0)
  } catch (error) {
    if (!(error instanceof SourceChanged) || restarts === 0) throw error
    return loadFile(transport, source, file, { take, usualSize, restarts: restarts - 1 })
  }
}
