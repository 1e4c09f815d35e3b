// Logits of a sequence at chosen positions, in a sequence of its own that is freed afterwards.
import { QwasmError } from '../errors.js'
import type { Engine } from '../runtime/core.js'
import { newBytes } from '../runtime/memory.js'
import type { Batch } from './batch.js'
import type { Control } from './queue.js'

export async function computeLogits(
  engine: Engine,
  vocabSize: number,
  ids: Int32Array,
  positions: readonly number[],
  batch: Batch,
  control: Control
): Promise<Float32Array> {
  if (ids.length === 0) throw new QwasmError('invalid_argument', 'The logits of no tokens were asked; at least one is needed.')
  const result = allocate(positions.length, vocabSize)
  const session = engine.newSession()
  try {
    session.setPrompt(ids)
    let done = 0
    await batch.prefill(control, (tokens) => {
      const end = Math.min(done + tokens, ids.length)
      const first = Math.min(...positions.filter((position) => position >= done && position < end), end)
      const rows = end - first
      const remaining = session.prefill(tokens, rows)
      if (rows > 0) copyRows(result, session.logits(rows, vocabSize), vocabSize, positions, first, end)
      done = end
      return remaining
    })
    return result
  } finally {
    session.free()
  }
}

function allocate(rows: number, vocabSize: number): Float32Array {
  return new Float32Array(newBytes(4 * rows * vocabSize, `the logits of ${rows} positions`, 'fewer positions take less').buffer)
}

/** Copies from the logits of the tokens first … end - 1 what was asked for. */
function copyRows(
  result: Float32Array,
  rows: Float32Array,
  size: number,
  positions: readonly number[],
  first: number,
  end: number
) {
  positions.forEach((position, i) => {
    if (position >= first && position < end)
      result.set(rows.subarray((position - first) * size, (position - first + 1) * size), i * size)
  })
}
