// Counts parameters, operations and bytes from the shapes in a config.
#include "core/engine/inspect.h"

#include <set>

namespace qwasm {

namespace {

struct Parameters {
  int64_t embedding = 0, attention = 0, mlp = 0, experts = 0, router = 0, norms = 0, lm_head = 0;
  int64_t idle_experts = 0;  // those of the experts that a token leaves out
  int64_t sparse_layers = 0;
  int64_t biases = 0;  // of those of attention

  // What is no matrix: float32 in memory, and not multiplied.
  int64_t vectors() const { return norms + biases; }
  int64_t total() const { return embedding + attention + mlp + experts + router + norms + lm_head; }
};

Parameters count(const Config& c) {
  Parameters p;
  p.embedding = c.vocab_size * c.hidden_size;
  p.lm_head = c.tie_word_embeddings ? 0 : p.embedding;
  p.biases = c.qkv_bias ? c.num_hidden_layers * (c.query_size() + 2 * c.key_value_size()) : 0;
  p.attention = c.num_hidden_layers * (2 * c.hidden_size * c.query_size() + 2 * c.hidden_size * c.key_value_size()) + p.biases;
  p.norms = c.num_hidden_layers * (2 * c.hidden_size + (c.qk_norm ? 2 * c.head_dim : 0)) + c.hidden_size;
  for (int64_t layer = 0; layer < c.num_hidden_layers; ++layer) {
    if (!c.is_sparse(layer)) {
      p.mlp += 3 * c.hidden_size * c.intermediate_size;
      continue;
    }
    const int64_t expert = 3 * c.hidden_size * c.moe_intermediate_size;
    p.experts += c.num_experts * expert;
    p.idle_experts += (c.num_experts - c.num_experts_per_tok) * expert;
    p.router += c.num_experts * c.hidden_size;
    ++p.sparse_layers;
  }
  return p;
}

// Bytes of `matrices` weights in each dtype beside `vectors` in float32.
Json weight_bytes(int64_t matrices, int64_t vectors) {
  return numbers_object({{"f32", 4 * (matrices + vectors)},
                         {"bf16", 2 * matrices + 4 * vectors},
                         {"q8", matrices * 34 / 32 + 4 * vectors},
                         {"q4", matrices * 18 / 32 + 4 * vectors}});
}

Json kv_bytes(int64_t values) { return numbers_object({{"f32", 4 * values}, {"f16", 2 * values}, {"q8", values * 34 / 32}}); }

Json stored(const TensorTable& tensors) {
  if (tensors.empty()) return nullptr;
  std::set<std::string> dtypes;
  int64_t bytes = 0;
  for (const auto& [name, tensor] : tensors) {
    dtypes.insert(tensor.dtype);
    bytes += tensor.end - tensor.begin;
  }
  return {{"dtypes", dtypes}, {"bytes", bytes}};
}

Json attention(const Config& c) {
  int64_t rope_layers = 0;
  for (int64_t layer = 0; layer < c.num_hidden_layers; ++layer) rope_layers += c.has_rope(layer);
  const bool mha = c.num_key_value_heads == c.num_attention_heads;
  Json json = numbers_object({{"query_heads", c.num_attention_heads},
                              {"key_value_heads", c.num_key_value_heads},
                              {"ratio", c.num_attention_heads / c.num_key_value_heads},
                              {"head_dim", c.head_dim},
                              {"rope_layers", rope_layers}});
  json["kind"] = mha ? "MHA" : c.num_key_value_heads == 1 ? "MQA" : "GQA";
  json["rope_type"] = RopeParameters::kTypeNames[static_cast<int>(c.rope.rope_type)];
  json["rope_theta"] = c.rope.rope_theta;
  json["qk_norm"] = c.qk_norm;
  json["qkv_bias"] = c.qkv_bias;
  return json;
}

}  // namespace

int64_t count_parameters(const Config& config) { return count(config).total(); }

Json inspect(const Model& model, int64_t context, double bandwidth) {
  const Config& c = model.config;
  const Parameters p = count(c);
  const int64_t active = p.total() - p.idle_experts, read_per_token = active - (c.tie_word_embeddings ? 0 : p.embedding);
  const int64_t kv_values = 2 * c.num_hidden_layers * c.key_value_size();
  const int64_t matrix_operations = 2 * (read_per_token - p.vectors()), attention_operations = 4 * context * c.query_size() * c.num_hidden_layers;

  const Json read = weight_bytes(read_per_token - p.vectors(), p.vectors()), kv = kv_bytes(kv_values * context);
  Json milliseconds = Json::object();
  for (const auto& [dtype, kv_dtype] : {std::pair("f32", "f32"), std::pair("bf16", "f32"), std::pair("q8", "f16"), std::pair("q4", "f16")}) {
    const double bytes = static_cast<double>(*read[dtype].get_ptr<const Json::number_integer_t*>() + *kv[kv_dtype].get_ptr<const Json::number_integer_t*>());
    milliseconds[dtype] = bytes / bandwidth * 1e3;
  }
  Json json = numbers_object({{"layers", c.num_hidden_layers},
                              {"hidden_size", c.hidden_size},
                              {"intermediate_size", c.intermediate_size},
                              {"vocab_size", c.vocab_size},
                              {"max_position_embeddings", c.max_position_embeddings}});
  json["architecture"] = c.architecture;
  json["model_type"] = c.model_type;
  json["runnable"] = check_runnable(c, 0).ok();
  json["tied_embeddings"] = c.tie_word_embeddings;
  json["attention"] = attention(c);
  json["experts"] = nullptr;
  if (p.sparse_layers > 0) {
    json["experts"] = numbers_object(
        {{"count", c.num_experts}, {"per_token", c.num_experts_per_tok}, {"intermediate_size", c.moe_intermediate_size}, {"layers", p.sparse_layers}});
  }
  json["parameters"] = numbers_object({{"total", p.total()}, {"active", active}, {"read_per_token", read_per_token}, {"embedding", p.embedding},
                                       {"attention", p.attention}, {"mlp", p.mlp}, {"experts", p.experts}, {"router", p.router}, {"norms", p.norms},
                                       {"lm_head", p.lm_head}});
  json["operations_per_token"] = numbers_object({{"context", context}, {"matrices", matrix_operations}, {"attention", attention_operations},
                                                 {"total", matrix_operations + attention_operations}});
  json["stored"] = stored(model.tensors);
  Json& memory = json["memory"];
  memory["weights"] = weight_bytes(p.total() - p.vectors(), p.vectors());
  memory["kv_per_token"] = kv_bytes(kv_values);
  memory["kv_at_context"] = kv;
  Json& bound = json["decode_lower_bound"];
  bound["bandwidth"] = bandwidth;
  bound["milliseconds"] = milliseconds;
  return json;
}

}  // namespace qwasm
