// Reads and writes .safetensors files: the tests' own code, independent of the core's.
import { readFileSync, writeFileSync } from 'node:fs'

// A copy, because a typed array needs an offset that is a multiple of its elements' size.
const DECODERS = {
  F32: bytes => new Float32Array(bytes.slice().buffer),
  BF16: bytes => new Float32Array(Uint32Array.from(new Uint16Array(bytes.slice().buffer), bits => bits << 16).buffer),
}

/** Name → { shape, data: Float32Array } of every F32 and BF16 tensor in the file. */
export function readTensors(path) {
  const file = new Uint8Array(readFileSync(path))
  const headerEnd = 8 + Number(new DataView(file.buffer).getBigUint64(0, true))
  const header = JSON.parse(new TextDecoder().decode(file.subarray(8, headerEnd)))
  const tensors = new Map()
  for (const [name, { dtype, shape, data_offsets: offsets }] of Object.entries(header)) {
    if (!DECODERS[dtype]) continue
    const [start, end] = offsets.map(offset => headerEnd + offset)
    tensors.set(name, { shape, data: DECODERS[dtype](file.subarray(start, end)) })
  }
  return tensors
}

/** Writes name → { shape, data: Float32Array } as F32. */
export function writeTensors(path, tensors) {
  const header = {}
  let at = 0
  for (const [name, { shape, data }] of tensors) {
    header[name] = { dtype: 'F32', shape, data_offsets: [at, at += data.byteLength] }
  }
  const json = Buffer.from(JSON.stringify(header))
  const length = Buffer.alloc(8)
  length.writeBigUInt64LE(BigInt(json.length))
  writeFileSync(path, Buffer.concat([length, json, ...[...tensors.values()].map(({ data }) => new Uint8Array(data.buffer, data.byteOffset, data.byteLength))]))
}
