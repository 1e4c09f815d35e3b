// Reads float32 tensors from a .safetensors file: the tests' own reader, independent of the core's.
import { readFileSync } from 'node:fs'

/** Name → { shape, data: Float32Array } of every F32 tensor in the file. */
export function readTensors(path) {
  const file = readFileSync(path)
  const headerEnd = 8 + Number(file.readBigUInt64LE(0))
  const header = JSON.parse(file.toString('utf8', 8, headerEnd))
  const tensors = new Map()
  for (const [name, entry] of Object.entries(header)) {
    if (entry.dtype !== 'F32') continue
    const [start, end] = entry.data_offsets.map(offset => headerEnd + offset)
    // A copy, because a Float32Array needs an offset that is a multiple of four.
    const bytes = file.buffer.slice(file.byteOffset + start, file.byteOffset + end)
    tensors.set(name, { shape: entry.shape, data: new Float32Array(bytes) })
  }
  return tensors
}
