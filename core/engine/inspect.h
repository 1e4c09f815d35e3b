// What config.json and the tensor headers say about an architecture: for people who study models.
#pragma once

#include "core/engine/load.h"

namespace qwasm {

// A JSON object; all counts are exact, derived from the shapes:
//   architecture, model_type, runnable, layers, hidden_size, intermediate_size, vocab_size, max_position_embeddings, tied_embeddings
//   attention:  { kind: "MHA" | "GQA" | "MQA", query_heads, key_value_heads, ratio (query heads per key-value head), head_dim, rope_type, rope_theta,
//               rope_layers (those that turn positions in), qk_norm, qkv_bias }
//   experts:    null, or { count, per_token, intermediate_size, layers }
//   parameters: { total (a tied head counted once), active, read_per_token, embedding, attention (with its biases), mlp, experts, router, norms, lm_head }.
//               active: all but the experts that a token leaves out, as model cards count ("3.3B activated"); read_per_token: those that
//               the step of one token reads, so without an untied embedding, of which it is one row.
//   operations_per_token: { context, matrices, attention, total }: a multiplication and its addition are two operations; attention at
//               that many positions costs 4 · context · query_heads · head_dim a layer (scores and mix).
//   stored:     null, or { dtypes, bytes } of all tensors in the headers
//   memory:     { weights: {f32, bf16, q8, q4}, kv_per_token: {f32, f16, q8}, kv_at_context: {f32, f16, q8} } in bytes.
//               q8 and q4: blocks of 32 with a float16 scale (8.5 and 4.5 bits a weight); vectors stay float32.
//   decode_lower_bound: { bandwidth (bytes/s), milliseconds: {f32, bf16, q8, q4} }: no decoder that reads those weights and the keys
//               and values of `context` positions once per token is faster (KV in float32 beside f32 and bf16, in float16 beside q8 and q4).
Json inspect(const Model& model, int64_t context, double bandwidth);

// Parameters of the model as the config shapes it, a tied head counted once.
int64_t count_parameters(const Config& config);

}  // namespace qwasm
