// The table of weight names and shapes. All families of model/config.cpp share it; some lack rows of it.
#include "core/model/weights.h"

#include <algorithm>
#include <span>

namespace qwasm {

namespace {

struct ForeignName {
  std::string_view gguf, hugging_face;
};
constexpr ForeignName kTensors[] = {{"token_embd", "model.embed_tokens"}, {"output_norm", "model.norm"}, {"output", "lm_head"}};
constexpr ForeignName kBlockTensors[] = {
    {"attn_norm", "input_layernorm"},
    {"attn_q", "self_attn.q_proj"},
    {"attn_k", "self_attn.k_proj"},
    {"attn_v", "self_attn.v_proj"},
    {"attn_q_norm", "self_attn.q_norm"},
    {"attn_k_norm", "self_attn.k_norm"},
    {"attn_output", "self_attn.o_proj"},
    {"ffn_norm", "post_attention_layernorm"},
    {"ffn_gate", "mlp.gate_proj"},
    {"ffn_up", "mlp.up_proj"},
    {"ffn_down", "mlp.down_proj"},
};

// A name of the column `from` as the column `to` has it, or as it stands.
using Column = std::string_view ForeignName::*;
std::string translate(std::span<const ForeignName> table, std::string_view name, Column from, Column to) {
  const auto known = std::find_if(table.begin(), table.end(), [&](const ForeignName& row) { return row.*from == name; });
  return std::string(known == table.end() ? name : (*known).*to);
}

constexpr std::string_view kGgufLayers = "blk.", kLayers = "model.layers.";

// `from_layers` is what names inside a layer begin with, `to_layers` what they begin with in the other column.
std::string rename(std::string_view name, Column from, Column to, std::string_view from_layers, std::string_view to_layers) {
  const size_t last = std::min(name.rfind('.'), name.size());  // before "weight" or "bias"
  const std::string ending(name.substr(last));
  const std::string_view stem = name.substr(0, last);
  if (!stem.starts_with(from_layers)) return translate(kTensors, stem, from, to) + ending;
  const size_t dot = std::min(stem.find('.', from_layers.size()), stem.size());
  const std::string_view layer = stem.substr(from_layers.size(), dot - from_layers.size()), part = stem.substr(std::min(dot + 1, stem.size()));
  return std::string(to_layers) + std::string(layer) + "." + translate(kBlockTensors, part, from, to) + ending;
}

}  // namespace

const char* name_root(const TensorTable& tensors) { return tensors.contains("embed_tokens.weight") ? "" : "model."; }

std::vector<WeightSlot> weight_slots(const Config& c, const TensorTable& tensors, Weights* weights) {
  const std::string root = name_root(tensors);
  std::vector<WeightSlot> slots;
  const auto matrix = [&](const std::string& name, int64_t rows, int64_t columns, Matrix* place) {
    slots.push_back({name + ".weight", rows, columns, place, nullptr});
  };
  const auto vector = [&](const std::string& name, int64_t length, const float** place) {
    slots.push_back({name, length, 1, nullptr, place});
  };
  matrix(root + "embed_tokens", c.vocab_size, c.hidden_size, &weights->embed_tokens);
  weights->layers.resize(static_cast<size_t>(c.num_hidden_layers));
  for (size_t i = 0; i < weights->layers.size(); ++i) {
    LayerWeights& layer = weights->layers[i];
    const std::string prefix = root + "layers." + std::to_string(i) + ".";
    vector(prefix + "input_layernorm.weight", c.hidden_size, &layer.input_layernorm);
    matrix(prefix + "self_attn.q_proj", c.query_size(), c.hidden_size, &layer.q_proj);
    matrix(prefix + "self_attn.k_proj", c.key_value_size(), c.hidden_size, &layer.k_proj);
    matrix(prefix + "self_attn.v_proj", c.key_value_size(), c.hidden_size, &layer.v_proj);
    if (c.qkv_bias) {
      vector(prefix + "self_attn.q_proj.bias", c.query_size(), &layer.q_bias);
      vector(prefix + "self_attn.k_proj.bias", c.key_value_size(), &layer.k_bias);
      vector(prefix + "self_attn.v_proj.bias", c.key_value_size(), &layer.v_bias);
    }
    if (c.qk_norm) {
      vector(prefix + "self_attn.q_norm.weight", c.head_dim, &layer.q_norm);
      vector(prefix + "self_attn.k_norm.weight", c.head_dim, &layer.k_norm);
    }
    matrix(prefix + "self_attn.o_proj", c.hidden_size, c.query_size(), &layer.o_proj);
    vector(prefix + "post_attention_layernorm.weight", c.hidden_size, &layer.post_attention_layernorm);
    matrix(prefix + "mlp.gate_proj", c.intermediate_size, c.hidden_size, &layer.gate_proj);
    matrix(prefix + "mlp.up_proj", c.intermediate_size, c.hidden_size, &layer.up_proj);
    matrix(prefix + "mlp.down_proj", c.hidden_size, c.intermediate_size, &layer.down_proj);
  }
  vector(root + "norm.weight", c.hidden_size, &weights->norm);
  const bool has_head = !root.empty() || tensors.contains("lm_head.weight");
  if (has_head && !c.tie_word_embeddings) matrix("lm_head", c.vocab_size, c.hidden_size, &weights->lm_head);
  if (c.rope.has_factors) slots.push_back({"rope_freqs.weight", c.head_dim / 2, 1, nullptr, &weights->rope_factors});
  return slots;
}

std::string hugging_face_name(std::string_view name) { return rename(name, &ForeignName::gguf, &ForeignName::hugging_face, kGgufLayers, kLayers); }
std::string gguf_name(std::string_view slot) {
  // Of a model that was saved without its head, names lack their root.
  const bool bare = slot.starts_with("layers.") || slot.starts_with("embed_tokens.") || slot.starts_with("norm.");
  const std::string name = (bare ? "model." : "") + std::string(slot);
  return rename(name, &ForeignName::hugging_face, &ForeignName::gguf, kLayers, kGgufLayers);
}

}  // namespace qwasm
