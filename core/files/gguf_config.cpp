// Translates GGUF's names of architectures and fields to Hugging Face's.
#include "core/files/gguf_config.h"

#include <algorithm>

#include "core/base/math.h"

namespace qwasm {

namespace {

struct Pair {
  std::string_view gguf, hugging_face;
};

// Of rows with one name the first is meant while reading.
constexpr GgufArchitecture kArchitectures[] = {
    {"qwen3", "qwen3", false},    {"qwen2", "qwen2", false},    {"llama", "llama", true},
    {"llama", "mistral", true},   {"smollm3", "smollm3", true}, {"qwen3moe", "qwen3_moe", false},
};

// Keys of an architecture, without its name. One without a counterpart says nothing that matters here, or is looked at below.
constexpr Pair kFields[] = {
    {"block_count", "num_hidden_layers"},
    {"embedding_length", "hidden_size"},
    {"feed_forward_length", "intermediate_size"},
    {"attention.head_count", "num_attention_heads"},
    {"attention.head_count_kv", "num_key_value_heads"},
    {"attention.key_length", "head_dim"},
    {"attention.layer_norm_rms_epsilon", "rms_norm_eps"},
    {"context_length", "max_position_embeddings"},
    {"rope.freq_base", "rope_theta"},
    {"expert_count", "num_experts"},
    {"expert_used_count", "num_experts_per_tok"},
    {"expert_feed_forward_length", "moe_intermediate_size"},
    {"attention.value_length", ""},
    {"attention.causal", ""},
    {"attention.sliding_window", ""},
    {"rope.dimension_count", ""},
    {"rope.scale_linear", ""},
    {"rope.scaling.type", ""},
    {"rope.scaling.factor", ""},
    {"rope.scaling.original_context_length", ""},
    {"rope.scaling.finetuned", ""},
    {"rope.scaling.attn_factor", ""},
    {"rope.scaling.yarn_beta_fast", ""},
    {"rope.scaling.yarn_beta_slow", ""},
    {"pooling_type", ""},
    {"tensor_data_layout", ""},
    {"vocab_size", ""},
};

constexpr Pair kYarnFields[] = {
    {"rope.scaling.factor", "factor"},
    {"rope.scaling.original_context_length", "original_max_position_embeddings"},
    {"rope.scaling.yarn_beta_fast", "beta_fast"},
    {"rope.scaling.yarn_beta_slow", "beta_slow"},
};

constexpr Pair kSampling[] = {
    {"general.sampling.temp", "temperature"}, {"general.sampling.top_k", "top_k"},
    {"general.sampling.top_p", "top_p"},      {"general.sampling.min_p", "min_p"},
    {"general.sampling.penalty_repeat", "repetition_penalty"},
};

template <size_t kCount>
const Pair* find(const Pair (&table)[kCount], std::string_view gguf) {
  const auto* found = std::find_if(std::begin(table), std::end(table), [&](const Pair& pair) { return pair.gguf == gguf; });
  return found == std::end(table) ? nullptr : found;
}

void set(Json* object, std::string_view name, Json value) { (*object)[std::string(name)] = std::move(value); }

Status refuse(const std::string& file, const std::string& key, const Json& found) {
  return error(Code::kUnsupported, "%s: %s: qwasm does not implement %s", file.c_str(), key.c_str(), describe(found).c_str());
}

// Of per-layer values that are all the same, that one. Others stay an array, which no field of config.json takes.
Json single(Json value) {
  if (!value.is_array() || value.empty()) return value;
  const bool same = std::all_of(value.begin(), value.end(), [&](const Json& element) { return element == value[0]; });
  return same ? Json(value[0]) : value;
}

bool is_zero(const Json& value) { return value == 0 || value == false; }

Status find_architecture(const GgufMetadata& metadata, const std::string& file, const GgufArchitecture** found) {
  std::string_view name, type = "model";
  QW_TRY(metadata.text(file, "general.architecture", &name));
  QW_TRY(metadata.text(file, "general.type", &type));
  if (name.empty()) return error(Code::kMissing, "%s: general.architecture is missing", file.c_str());
  if (type != "model") return refuse(file, "general.type", std::string(type));
  *found = std::find_if(std::begin(kArchitectures), std::end(kArchitectures), [&](const GgufArchitecture& a) { return a.name == name; });
  return *found == std::end(kArchitectures) ? refuse(file, "general.architecture", std::string(name)) : Status();
}

// The value of a key of the architecture; null where it is absent.
class ArchitectureView {
 public:
  ArchitectureView(const GgufMetadata& metadata, std::string_view name) : metadata_(metadata), prefix_(std::string(name) + ".") {}

  Json operator[](std::string_view key) const {
    const GgufValue* value = metadata_.find(name(key));
    return value ? gguf_json(*value) : Json();
  }
  std::string name(std::string_view key) const { return prefix_ + std::string(key); }
  const std::string& prefix() const { return prefix_; }

 private:
  const GgufMetadata& metadata_;
  std::string prefix_;
};

// Zero, false and absence mean the same here.
Status refuse_unknown_keys(const GgufMetadata& metadata, const std::string& file, const std::string& prefix) {
  for (const auto& [key, value] : metadata.entries()) {
    if (!key.starts_with(prefix) || find(kFields, key.substr(prefix.size()))) continue;
    const Json json = gguf_json(value);
    if (!is_zero(json)) return refuse(file, std::string(key), json);
  }
  return {};
}

Status read_scaling(const ArchitectureView& values, const std::string& file, Json* config) {
  Json type = values["rope.scaling.type"], linear = values["rope.scale_linear"];
  if (!linear.is_null() && linear != 1 && !is_zero(linear)) return refuse(file, values.name("rope.scale_linear"), linear);
  if (type.is_null() || type == "none") return {};
  Json scaling;
  set(&scaling, "rope_type", type);
  for (const auto& [gguf, hugging_face] : kYarnFields) set(&scaling, hugging_face, values[gguf]);
  // There it multiplies what follows from the factor; in config.json it takes its place.
  const Json attention = values["rope.scaling.attn_factor"], factor = values["rope.scaling.factor"];
  const auto *times = attention.get_ptr<const Json::number_float_t*>(), *stretch = factor.get_ptr<const Json::number_float_t*>();
  if (type == "yarn" && times && stretch && *stretch >= 1) set(&scaling, "attention_factor", *times * (0.1 * log_f64(*stretch) + 1));
  set(config, "rope_scaling", std::move(scaling));
  return {};
}

Status read_attention(const ArchitectureView& values, const std::string& file, Json* config) {
  Json& head_dim = (*config)["head_dim"];
  const Json heads = (*config)["num_attention_heads"], hidden = (*config)["hidden_size"];
  const auto *width = hidden.get_ptr<const Json::number_integer_t*>(), *count = heads.get_ptr<const Json::number_integer_t*>();
  if (head_dim.is_null() && width && count && *count > 0) head_dim = *width / *count;
  for (const char* key : {"attention.value_length", "rope.dimension_count"}) {
    const Json value = values[key];
    if (!value.is_null() && value != head_dim) return refuse(file, values.name(key), value);
  }
  if (values["attention.causal"] == false) return refuse(file, values.name("attention.causal"), false);
  const Json window = values["attention.sliding_window"];
  if (window.is_null() || is_zero(window)) return {};
  if ((*config)["model_type"] != "llama") return refuse(file, values.name("attention.sliding_window"), window);
  set(config, "model_type", "mistral");  // Llama with a window is what config.json calls so
  set(config, "sliding_window", window);
  return {};
}

Status read_end_tokens(const GgufMetadata& metadata, const std::string& file, Json* config) {
  Json ids = Json::array();
  for (const char* key : {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"}) {
    int64_t id = -1;
    QW_TRY(metadata.integer(file, key, &id));
    if (id >= 0 && std::find(ids.begin(), ids.end(), id) == ids.end()) ids.push_back(id);
  }
  if (!ids.empty()) set(config, "eos_token_id", std::move(ids));
  return {};
}

}  // namespace

Status gguf_config(const GgufMetadata& metadata, const std::string& file, const GgufTensors& tensors, Json* config) {
  const GgufArchitecture* architecture = nullptr;
  QW_TRY(find_architecture(metadata, file, &architecture));
  const ArchitectureView values(metadata, architecture->name);
  QW_TRY(refuse_unknown_keys(metadata, file, values.prefix()));
  set(config, "model_type", std::string(architecture->model_type));
  set(config, "vocab_size", tensors.vocab_size);
  set(config, "tie_word_embeddings", !tensors.has_head);
  for (const auto& [gguf, hugging_face] : kFields) {
    if (!hugging_face.empty()) set(config, hugging_face, single(values[gguf]));
  }
  if (architecture->model_type != "qwen3_moe" && !(*config)["num_experts"].is_null() && !is_zero((*config)["num_experts"])) {
    return refuse(file, values.name("expert_count"), (*config)["num_experts"]);
  }
  QW_TRY(read_scaling(values, file, config));
  QW_TRY(read_attention(values, file, config));
  return read_end_tokens(metadata, file, config);
}

Json gguf_generation_config(const GgufMetadata& metadata) {
  Json config;
  for (const auto& [gguf, hugging_face] : kSampling) {
    const GgufValue* value = metadata.find(gguf);
    if (value) set(&config, hugging_face, gguf_json(*value));
  }
  if (!config.is_null()) set(&config, "do_sample", true);
  return config;
}

const GgufArchitecture* gguf_architecture_of(std::string_view model_type) {
  const auto* found = std::find_if(std::begin(kArchitectures), std::end(kArchitectures), [&](const GgufArchitecture& a) { return a.model_type == model_type; });
  return found == std::end(kArchitectures) ? nullptr : found;
}

bool gguf_interleaves_heads(const GgufMetadata& metadata) {
  const GgufArchitecture* architecture = nullptr;
  return find_architecture(metadata, {}, &architecture).ok() && architecture->interleaves_heads;
}

}  // namespace qwasm
