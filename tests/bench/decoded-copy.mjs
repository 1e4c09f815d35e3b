// Copies of a model whose matrices went through another quantizer and back to float32, to be run in exact mode.
import { copyFileSync, mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { readTensors, writeTensors } from '../support/safetensors.mjs'

const BLOCK = 32

/** Makes folder `to` from folder `from`; `requantize` changes each block of 32 columns of a matrix in place. */
export function writeDecodedCopy(from, to, requantize) {
  mkdirSync(to, { recursive: true })
  for (const name of readdirSync(from)) if (name !== 'model.safetensors') copyFileSync(join(from, name), join(to, name))
  const tensors = readTensors(join(from, 'model.safetensors'))
  for (const [name, { shape, data }] of tensors) {
    if (shape.length !== 2) continue
    if (shape[1] % BLOCK !== 0) throw new Error(`${name}: ${shape[1]} columns are not whole blocks of ${BLOCK}`)
    for (let at = 0; at < data.length; at += BLOCK) requantize(data.subarray(at, at + BLOCK))
  }
  writeTensors(join(to, 'model.safetensors'), tensors)
}

/** A normal float16's nearest value, ties to even; below 2^-14 in steps of 2^-24. */
export function roundToHalf(value) {
  const exponent = Math.max(Math.floor(Math.log2(Math.abs(value))), -14)
  const step = 2 ** (exponent - 10), whole = value / step, low = Math.floor(whole), rest = whole - low
  return (rest > 0.5 || (rest === 0.5 && low % 2 !== 0) ? low + 1 : low) * step
}

/** Plain Q4_0, as the gguf package for Python writes it: the extreme weight is -8, the others take the nearest value. In place. */
export function roundTripQ4_0(block) {
  let extreme = 0
  for (const weight of block) if (Math.abs(weight) > Math.abs(extreme)) extreme = weight
  if (extreme === 0) return
  const scale = Math.fround(extreme / -8), inverse = Math.fround(1 / scale), stored = roundToHalf(scale)
  for (let i = 0; i < BLOCK; i++) {
    const whole = Math.trunc(Math.fround(block[i] * inverse + 8.5))
    block[i] = (Math.min(Math.max(whole, 0), 15) - 8) * stored
  }
}
