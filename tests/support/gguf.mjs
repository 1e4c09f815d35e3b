// Reads .gguf files: the tests' own code, independent of the core's.
import { readFileSync } from 'node:fs'

const TYPES = { 0: 'F32', 1: 'F16', 2: 'Q4_0', 8: 'Q8_0' }
const VALUES = { 4: 'UINT32', 5: 'INT32', 6: 'FLOAT32', 7: 'BOOL', 8: 'STRING', 9: 'ARRAY' }
const BLOCK = 32

/** A float16's value. */
function half(bits) {
  const exponent = (bits >> 10) & 31, fraction = bits & 1023
  const magnitude = exponent === 0 ? fraction * 2 ** -24 : (1024 + fraction) * 2 ** (exponent - 25)
  return bits & 0x8000 ? -magnitude : magnitude
}

const DECODERS = {
  F32: view => i => view.getFloat32(4 * i, true),
  F16: view => i => half(view.getUint16(2 * i, true)),
  Q8_0: view => i => {
    const block = 34 * Math.floor(i / BLOCK)
    return view.getInt8(block + 2 + i % BLOCK) * half(view.getUint16(block, true))
  },
  Q4_0: view => i => {
    const block = 18 * Math.floor(i / BLOCK), k = i % BLOCK
    return (((view.getUint8(block + 2 + k % 16) >> (k < 16 ? 0 : 4)) & 15) - 8) * half(view.getUint16(block, true))
  },
}

class Reader {
  at = 0

  constructor(bytes) {
    this.bytes = bytes
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  }

  #skip(bytes) {
    this.at += bytes
    return this.at - bytes
  }
  u32 = () => this.view.getUint32(this.#skip(4), true)
  u64 = () => Number(this.view.getBigUint64(this.#skip(8), true))
  string = () => {
    const length = this.u64()
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(this.bytes.subarray(this.#skip(length), this.at))
  }
  value(type) {
    if (type === 'UINT32') return this.u32()
    if (type === 'INT32') return this.view.getInt32(this.#skip(4), true)
    if (type === 'FLOAT32') return this.view.getFloat32(this.#skip(4), true)
    if (type === 'BOOL') return this.view.getUint8(this.#skip(1)) === 1
    if (type === 'STRING') return this.string()
    throw new Error(`a value of type ${type}`)
  }
  field() {
    const type = VALUES[this.u32()]
    if (type !== 'ARRAY') return { type: [type], value: this.value(type) }
    const item = VALUES[this.u32()]
    return { type: [type, item], value: Array.from({ length: this.u64() }, () => this.value(item)) }
  }
}

/** { version, keys: name → { type, value }, tensors: name → { type, shape (rows first), values() } }; `bytes` may be a path. */
export function readGguf(bytes) {
  const reader = new Reader(typeof bytes === 'string' ? new Uint8Array(readFileSync(bytes)) : bytes)
  if (reader.u32() !== 0x46554747) throw new Error('the file does not begin with GGUF')
  const version = reader.u32()
  const tensorCount = reader.u64(), keyCount = reader.u64()
  const keys = Object.fromEntries(Array.from({ length: keyCount }, () => [reader.string(), reader.field()]))
  const listed = Array.from({ length: tensorCount }, () => {
    const name = reader.string()
    const shape = Array.from({ length: reader.u32() }, reader.u64).reverse()
    return { name, shape, type: TYPES[reader.u32()], offset: reader.u64() }
  })
  const data = Math.ceil(reader.at / 32) * 32
  const tensors = Object.fromEntries(listed.map(({ name, shape, type, offset }) => {
    const count = shape.reduce((product, size) => product * size, 1)
    const view = new DataView(reader.bytes.buffer, reader.bytes.byteOffset + data + offset)
    return [name, { type, shape, offset, values: () => Float32Array.from({ length: count }, (_, i) => DECODERS[type](view)(i)) }]
  }))
  return { version, keys, tensors }
}
