// The table of weight names and shapes of Qwen3.
#include "core/model/weights.h"

namespace qwasm {

std::vector<WeightSlot> weight_slots(const Config& c, Weights* weights) {
  std::vector<WeightSlot> slots;
  const auto matrix = [&](const std::string& name, int64_t rows, int64_t columns, Matrix* place) {
    slots.push_back({name + ".weight", rows, columns, place, nullptr});
  };
  const auto vector = [&](const std::string& name, int64_t length, const float** place) {
    slots.push_back({name + ".weight", length, 1, nullptr, place});
  };
  matrix("model.embed_tokens", c.vocab_size, c.hidden_size, &weights->embed_tokens);
  weights->layers.resize(static_cast<size_t>(c.num_hidden_layers));
  for (size_t i = 0; i < weights->layers.size(); ++i) {
    LayerWeights& layer = weights->layers[i];
    const std::string prefix = "model.layers." + std::to_string(i) + ".";
    vector(prefix + "input_layernorm", c.hidden_size, &layer.input_layernorm);
    matrix(prefix + "self_attn.q_proj", c.query_size(), c.hidden_size, &layer.q_proj);
    matrix(prefix + "self_attn.k_proj", c.key_value_size(), c.hidden_size, &layer.k_proj);
    matrix(prefix + "self_attn.v_proj", c.key_value_size(), c.hidden_size, &layer.v_proj);
    vector(prefix + "self_attn.q_norm", c.head_dim, &layer.q_norm);
    vector(prefix + "self_attn.k_norm", c.head_dim, &layer.k_norm);
    matrix(prefix + "self_attn.o_proj", c.hidden_size, c.query_size(), &layer.o_proj);
    vector(prefix + "post_attention_layernorm", c.hidden_size, &layer.post_attention_layernorm);
    matrix(prefix + "mlp.gate_proj", c.intermediate_size, c.hidden_size, &layer.gate_proj);
    matrix(prefix + "mlp.up_proj", c.intermediate_size, c.hidden_size, &layer.up_proj);
    matrix(prefix + "mlp.down_proj", c.hidden_size, c.intermediate_size, &layer.down_proj);
  }
  vector("model.norm", c.hidden_size, &weights->norm);
  if (!c.tie_word_embeddings) matrix("lm_head", c.vocab_size, c.hidden_size, &weights->lm_head);
  return slots;
}

}  // namespace qwasm
