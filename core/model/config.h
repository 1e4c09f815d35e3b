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
  enum class Type { kDefault, kYarn, kLlama3 };
  static constexpr const char* kTypeNames[] = {"default", "yarn", "llama3"};
  Type rope_type = Type::kDefault;
  double rope_theta = 10000;
  bool has_factors = false;  // inv_freq is divided by Weights::rope_factors: how GGUF files store Llama 3's scaling
  // yarn and llama3
  double factor = 1;
  int64_t original_max_position_embeddings = 0;
  // llama3 only
  double low_freq_factor = 1, high_freq_factor = 4;
  // yarn only
  double beta_fast = 32, beta_slow = 1;
  double attention_factor = 0;  // 0: computed from factor
  double mscale = 0, mscale_all_dim = 0;
  bool truncate = true;
};

struct Config {
  std::string model_type, architecture;
  int64_t vocab_size = 0, hidden_size = 0, intermediate_size = 0, num_hidden_layers = 0;
  int64_t num_attention_heads = 0, num_key_value_heads = 0, head_dim = 0;
  int64_t max_position_embeddings = 32768;
  double rms_norm_eps = 1e-6;
  bool tie_word_embeddings = false;
  RopeParameters rope;
  std::vector<int64_t> eos_token_id;

  // In what families differ.
  bool qk_norm = false;                 // queries and keys are normed per head (Qwen3)
  bool qkv_bias = false;                // (Qwen2)
  std::vector<int64_t> no_rope_layers;  // for each layer 1, or 0 where positions are not turned in (SmolLM3); empty: all are 1
  int64_t sliding_window = 0;           // positions that a token sees, itself one of them (Mistral); 0: all before it

  // Mixture of experts (Qwen3-MoE): 0 experts in a dense model. Layers in mlp_only_layers, and those that decoder_sparse_step leaves
  // out, have an ordinary MLP.
  int64_t num_experts = 0, num_experts_per_tok = 0, moe_intermediate_size = 0, decoder_sparse_step = 1;
  std::vector<int64_t> mlp_only_layers;

  int64_t query_size() const { return num_attention_heads * head_dim; }
  int64_t key_value_size() const { return num_key_value_heads * head_dim; }
  bool is_sparse(int64_t layer) const;
  bool has_rope(int64_t layer) const { return no_rope_layers.empty() || no_rope_layers[static_cast<size_t>(layer)] != 0; }
};

// Reads config.json. A family, or a field that changes the arithmetic, that qwasm does not know is refused by name.
Status parse_config(const Json& json, Config* config);

// Whether the forward pass can run it in a context of `context_length`: the experts of Qwen3-MoE are described (for inspect) but not run, and a
// sliding window must not come to act.
Status check_runnable(const Config& config, int64_t context_length);

// The end tokens: generation_config.json's list first, then config.json's. `generation_config` may be null (no such file).
Status find_end_tokens(const Config& config, const Json& generation_config, std::vector<int64_t>* eos_token_ids);

}  // namespace qwasm
