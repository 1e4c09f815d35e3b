// What config.json and generation_config.json say: the shape of a model, as data. Field names are Hugging Face's.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/files/json_view.h"

namespace qwasm {

// How positions turn queries and keys (rope_parameters, or rope_theta with rope_scaling in older files).
struct RopeParameters {
  enum class Type { kDefault, kYarn };
  Type rope_type = Type::kDefault;
  double rope_theta = 10000;
  // yarn only
  double factor = 1;
  int64_t original_max_position_embeddings = 0;
  double beta_fast = 32, beta_slow = 1;
  double attention_factor = 0;  // 0: computed from factor
  double mscale = 0, mscale_all_dim = 0;
  bool truncate = true;
};

struct Config {
  std::string model_type, architecture;
  int64_t vocab_size = 0, hidden_size = 0, intermediate_size = 0, num_hidden_layers = 0;
  int64_t num_attention_heads = 0, num_key_value_heads = 0, head_dim = 128;
  int64_t max_position_embeddings = 32768;
  double rms_norm_eps = 1e-6;
  bool tie_word_embeddings = false;
  RopeParameters rope;
  std::vector<int64_t> eos_token_id;

  // Mixture of experts (Qwen3-MoE): 0 experts in a dense model. Layers in mlp_only_layers, and those that decoder_sparse_step leaves
  // out, have an ordinary MLP.
  int64_t num_experts = 0, num_experts_per_tok = 0, moe_intermediate_size = 0, decoder_sparse_step = 1;
  std::vector<int64_t> mlp_only_layers;

  int64_t query_size() const { return num_attention_heads * head_dim; }
  int64_t key_value_size() const { return num_key_value_heads * head_dim; }
  bool is_sparse(int64_t layer) const;
};

// Reads config.json. A family, or a field that changes the arithmetic, that qwasm does not know is refused by name.
Status parse_config(const Json& json, Config* config);

// Whether the forward pass can run it: the experts of Qwen3-MoE are described (for inspect) but not run.
Status check_runnable(const Config& config);

// The end tokens: generation_config.json's list first, then config.json's. `generation_config` may be null (no such file).
Status find_end_tokens(const Config& config, const Json& generation_config, std::vector<int64_t>* eos_token_ids);

}  // namespace qwasm
