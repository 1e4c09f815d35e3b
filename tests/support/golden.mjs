// The golden models: what Hugging Face transformers computed for them, and how near we must come.
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { readTensors } from './safetensors.mjs'

export const root = fileURLToPath(new URL('../../', import.meta.url))

const SMALL_MODELS = [
  'qwen3', 'qwen3-untied-f16', 'qwen3-sharded-f32', 'qwen3-tied-with-head', 'qwen3-old-config', 'qwen3-yarn', 'qwen3-mha', 'qwen3-15-heads',
  'qwen2', 'qwen2-14-heads', 'llama3-rope', 'llama-9-heads', 'mistral-15-heads', 'smollm3-nope',
]

/** Every model with goldens: { name, folder, goldenFolder }; paths are relative to the repository, with slashes. */
export const goldenModels = [
  { name: 'demo', folder: 'models/demo', goldenFolder: 'tests/golden/demo' },
  ...SMALL_MODELS.map(name => ({ name, folder: `tests/golden/models/${name}`, goldenFolder: `tests/golden/models/${name}` })),
]

/** The cases of a golden folder: { name, ids, greedy, positions, vocabSize, logits } with logits (positions × vocabSize). */
export function goldenCases(goldenFolder) {
  const { cases } = JSON.parse(readFileSync(join(root, goldenFolder, 'golden.json'), 'utf8'))
  const tensors = readTensors(join(root, goldenFolder, 'golden.safetensors'))
  return cases.map(({ name, ids, greedy }) => {
    const { shape: [rows, vocabSize], data } = tensors.get(`${name}.logits`)
    const positions = Array.from({ length: rows }, (_, row) => ids.length - rows + row)
    return { name, ids, greedy, positions, vocabSize, logits: data }
  })
}

/** The cases of a GGUF model, in the same form. */
export function ggufGoldens(model) {
  const { models } = JSON.parse(readFileSync(join(root, 'tests/golden/gguf/golden.json'), 'utf8'))
  const tensors = readTensors(join(root, 'tests/golden/gguf/golden.safetensors'))
  return models[model].map(({ name, ids, greedy }) => {
    const { shape: [rows, vocabSize], data } = tensors.get(`${model}.${name}.logits`)
    const positions = Array.from({ length: rows }, (_, row) => ids.length - rows + row)
    return { name, ids, greedy, positions, vocabSize, logits: data }
  })
}

/** How far a logit may be from the golden one: 1e-4, or 1e-5 of the position's largest logit where that exceeds 10. */
export function tolerance(expectedRow) {
  let largest = 0
  for (const logit of expectedRow) largest = Math.max(largest, Math.abs(logit))
  return 1e-4 * Math.max(1, largest / 10)
}

/** The worst deviation as a multiple of its position's tolerance (at most 1 is right); Infinity for NaN or a wrong length. */
export function worstDeviation(logits, expected, vocabSize) {
  if (logits.length !== expected.length) return Infinity
  let worst = 0
  for (let start = 0; start < expected.length; start += vocabSize) {
    const allowed = tolerance(expected.subarray(start, start + vocabSize))
    for (let i = start; i < start + vocabSize; i++) {
      const deviation = Math.abs(logits[i] - expected[i]) / allowed
      if (!(deviation <= worst)) worst = Number.isNaN(deviation) ? Infinity : deviation
    }
  }
  return worst
}

const logitBits = JSON.parse(readFileSync(join(root, 'tests/golden/logit-bits.json'), 'utf8'))

/** What `wordHash` of the case's logits is in every build: the native scalar one wrote it down. */
export const expectedBits = (modelName, caseName) => logitBits[modelName][caseName]

/** FNV-1a over the 32-bit words of a Float32Array, as the core's own tests compute it. */
export function wordHash(array) {
  let hash = 2166136261
  for (const word of new Uint32Array(array.buffer, array.byteOffset, array.length)) hash = Math.imul(hash ^ word, 16777619)
  return (hash >>> 0).toString(16).padStart(8, '0')
}

/** SHA-256 of the bytes of a typed array: equal hashes are equal bits. */
export function hashBits(array) {
  return createHash('sha256').update(new Uint8Array(array.buffer, array.byteOffset, array.byteLength)).digest('hex')
}

/** Quantized runs of the demo model whose bits are written down: name in logit-bits.json, and the options of loadModel. */
export const quantizedRuns = [
  { name: 'demo q8', options: { dtype: 'q8' } },
  { name: 'demo q4', options: { dtype: 'q4' } },
  { name: 'demo q4 kv q8', options: { dtype: 'q4', kv: 'q8' } },
]
