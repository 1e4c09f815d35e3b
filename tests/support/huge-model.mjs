// A folder that claims to hold a model of gigabytes: config.json and tensor headers are there, the weights are a hole in the file.
import { closeSync, ftruncateSync, openSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'

const CONFIG = {
  architectures: ['Qwen3ForCausalLM'],
  model_type: 'qwen3',
  hidden_act: 'silu',
  attention_bias: false,
  hidden_size: 4096,
  intermediate_size: 64,
  num_hidden_layers: 1,
  num_attention_heads: 1,
  num_key_value_heads: 1,
  head_dim: 64,
  rms_norm_eps: 1e-6,
  rope_theta: 1e6,
  max_position_embeddings: 4096,
  tie_word_embeddings: true,
  eos_token_id: 0,
}

function shapes({ vocab_size: vocab, hidden_size: hidden, intermediate_size: inner, head_dim: head }) {
  const layer = {
    'input_layernorm': [hidden], 'post_attention_layernorm': [hidden], 'self_attn.q_norm': [head], 'self_attn.k_norm': [head],
    'self_attn.q_proj': [head, hidden], 'self_attn.k_proj': [head, hidden], 'self_attn.v_proj': [head, hidden], 'self_attn.o_proj': [hidden, head],
    'mlp.gate_proj': [inner, hidden], 'mlp.up_proj': [inner, hidden], 'mlp.down_proj': [hidden, inner],
  }
  const inLayer = Object.entries(layer).map(([name, shape]) => [`model.layers.0.${name}.weight`, shape])
  return [['model.embed_tokens.weight', [vocab, hidden]], ['model.norm.weight', [hidden]], ...inLayer]
}

/** Fills `folder`; the embedding alone takes `gigabytes` as BF16. */
export function writeHugeModel(folder, gigabytes) {
  const config = { ...CONFIG, vocab_size: Math.ceil(gigabytes * 1e9 / 2 / CONFIG.hidden_size) }
  writeFileSync(join(folder, 'config.json'), JSON.stringify(config))
  const header = {}
  let at = 0
  for (const [name, shape] of shapes(config)) {
    header[name] = { dtype: 'BF16', shape, data_offsets: [at, at += 2 * shape.reduce((product, n) => product * n)] }
  }
  const json = Buffer.from(JSON.stringify(header))
  const length = Buffer.alloc(8)
  length.writeBigUInt64LE(BigInt(json.length))
  const file = openSync(join(folder, 'model.safetensors'), 'w')
  writeSync(file, Buffer.concat([length, json]))
  ftruncateSync(file, 8 + json.length + at)
  closeSync(file)
}
