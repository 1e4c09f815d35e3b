// Reads config.json in both of its spellings (before and since transformers 5). Families are rows of a table: what differs is data.
#include "core/model/config.h"

#include <algorithm>

namespace qwasm {

namespace {

constexpr const char* kFile = "config.json";
constexpr auto kRequired = Presence::kRequired;
constexpr auto kOptional = Presence::kOptional;
constexpr int64_t kMostTokens = 1 << 24, kMostHeadDim = 1024;

// What a family is, and what its config.json leaves out: the defaults are transformers'.
struct Family {
  const char* model_type;
  const char* architecture;
  bool qk_norm = false, qkv_bias = false, tie_word_embeddings = false;
  int64_t head_dim = 0;  // 0: hidden_size / num_attention_heads
  int64_t max_position_embeddings = 32768;
  double rope_theta = 10000;
};
constexpr Family kFamilies[] = {
    {.model_type = "qwen3", .architecture = "Qwen3ForCausalLM", .qk_norm = true, .head_dim = 128},
    {.model_type = "qwen3_moe", .architecture = "Qwen3MoeForCausalLM", .qk_norm = true, .head_dim = 128},
    {.model_type = "qwen2", .architecture = "Qwen2ForCausalLM", .qkv_bias = true},
    {.model_type = "llama", .architecture = "LlamaForCausalLM", .max_position_embeddings = 2048},
    {.model_type = "mistral", .architecture = "MistralForCausalLM", .max_position_embeddings = 131072},
    {.model_type = "smollm3", .architecture = "SmolLM3ForCausalLM", .tie_word_embeddings = true, .rope_theta = 2e6},
};

constexpr const char* kFamilyNames = "qwen3, qwen2, llama, mistral, smollm3 and (for inspect) qwen3_moe";

Status unsupported(const char* field, const std::string& found, const char* supported) {
  return error(Code::kUnsupported, "%s: %s: qwasm does not implement %s; it implements %s", kFile, field, found.c_str(), supported);
}

Status parse_family(const Fields& fields, Config* config) {
  QW_TRY(fields.text("model_type", kRequired, &config->model_type));
  const auto* family = std::find_if(std::begin(kFamilies), std::end(kFamilies), [&](const Family& f) { return config->model_type == f.model_type; });
  if (family == std::end(kFamilies)) return unsupported("model_type", describe(Json(config->model_type)), kFamilyNames);
  config->architecture = family->architecture;
  config->qk_norm = family->qk_norm;
  config->qkv_bias = family->qkv_bias;
  config->tie_word_embeddings = family->tie_word_embeddings;
  config->head_dim = family->head_dim;
  config->max_position_embeddings = family->max_position_embeddings;
  config->rope.rope_theta = family->rope_theta;
  const Json* architectures = fields.find("architectures");
  const std::string whole(family->architecture), headless = whole.substr(0, whole.find("ForCausalLM")) + "Model";  // as AutoModel saves it
  const bool same = !architectures || (architectures->is_array() && architectures->size() == 1 &&
                                       ((*architectures)[0] == whole || (*architectures)[0] == headless));
  return same ? Status() : unsupported("architectures", to_text(*architectures), family->architecture);
}

// Where the file has no head_dim, the heads share hidden_size.
Status finish_head_dim(Config* config) {
  const int64_t heads = config->num_attention_heads;
  if (config->head_dim == 0) {
    if (config->hidden_size % heads != 0) {
      return error(Code::kInvalidFile, "%s: hidden_size: expected a multiple of num_attention_heads (%lld), as there is no head_dim, found %lld", kFile,
                   static_cast<long long>(heads), static_cast<long long>(config->hidden_size));
    }
    config->head_dim = config->hidden_size / heads;
  }
  if (config->head_dim % 2 == 0 && config->head_dim <= kMostHeadDim) return {};
  return error(Code::kInvalidFile, "%s: head_dim: expected an even number up to %lld, found %lld", kFile, static_cast<long long>(kMostHeadDim),
               static_cast<long long>(config->head_dim));
}

Status parse_sizes(const Fields& fields, Config* config) {
  QW_TRY(fields.integer("vocab_size", 1, 1 << 24, kRequired, &config->vocab_size));
  QW_TRY(fields.integer("hidden_size", 1, 1 << 16, kRequired, &config->hidden_size));
  QW_TRY(fields.integer("intermediate_size", 1, 1 << 20, kRequired, &config->intermediate_size));
  QW_TRY(fields.integer("num_hidden_layers", 1, 1024, kRequired, &config->num_hidden_layers));
  QW_TRY(fields.integer("num_attention_heads", 1, 1024, kRequired, &config->num_attention_heads));
  config->num_key_value_heads = config->num_attention_heads;
  QW_TRY(fields.integer("num_key_value_heads", 1, config->num_attention_heads, kOptional, &config->num_key_value_heads));
  QW_TRY(fields.integer("head_dim", 2, kMostHeadDim, kOptional, &config->head_dim));
  QW_TRY(fields.integer("max_position_embeddings", 1, kMostTokens, kOptional, &config->max_position_embeddings));
  QW_TRY(fields.number("rms_norm_eps", 0, 1, kOptional, &config->rms_norm_eps));
  QW_TRY(fields.boolean("tie_word_embeddings", kOptional, &config->tie_word_embeddings));
  QW_TRY(fields.integers("eos_token_id", 0, config->vocab_size - 1, kOptional, &config->eos_token_id));
  if (config->num_attention_heads % config->num_key_value_heads != 0) {
    return error(Code::kInvalidFile, "%s: num_attention_heads: expected a multiple of num_key_value_heads (%lld), found %lld", kFile,
                 static_cast<long long>(config->num_key_value_heads), static_cast<long long>(config->num_attention_heads));
  }
  return finish_head_dim(config);
}

Status parse_experts(const Fields& fields, Config* config) {
  if (config->model_type != "qwen3_moe") return {};
  QW_TRY(fields.integer("num_experts", 1, 4096, kRequired, &config->num_experts));
  QW_TRY(fields.integer("num_experts_per_tok", 1, config->num_experts, kRequired, &config->num_experts_per_tok));
  QW_TRY(fields.integer("moe_intermediate_size", 1, 1 << 20, kRequired, &config->moe_intermediate_size));
  QW_TRY(fields.integer("decoder_sparse_step", 1, 1024, kOptional, &config->decoder_sparse_step));
  return fields.integers("mlp_only_layers", 0, config->num_hidden_layers - 1, kOptional, &config->mlp_only_layers);
}

// `type` of older files is today's `rope_type`.
Status parse_rope_type(const Fields& fields, RopeParameters* rope) {
  std::string type = "default";
  QW_TRY(fields.text("type", kOptional, &type));
  QW_TRY(fields.text("rope_type", kOptional, &type));
  const auto* name = std::find(std::begin(RopeParameters::kTypeNames), std::end(RopeParameters::kTypeNames), type);
  if (name == std::end(RopeParameters::kTypeNames)) {
    return error(Code::kUnsupported, "%s: rope_type: qwasm does not implement %s; it implements default, yarn and llama3", fields.where().c_str(),
                 describe(Json(type)).c_str());
  }
  rope->rope_type = static_cast<RopeParameters::Type>(name - std::begin(RopeParameters::kTypeNames));
  return {};
}

Status parse_llama3(const Fields& fields, RopeParameters* rope) {
  QW_TRY(fields.number("factor", 1, 1e6, kRequired, &rope->factor));
  QW_TRY(fields.number("low_freq_factor", 1e-6, 1e6, kRequired, &rope->low_freq_factor));
  QW_TRY(fields.number("high_freq_factor", 1e-6, 1e6, kRequired, &rope->high_freq_factor));
  QW_TRY(fields.integer("original_max_position_embeddings", 1, kMostTokens, kRequired, &rope->original_max_position_embeddings));
  if (rope->low_freq_factor < rope->high_freq_factor) return {};
  return error(Code::kInvalidFile, "%s: high_freq_factor: expected more than low_freq_factor (%g), found %g", fields.where().c_str(),
               rope->low_freq_factor, rope->high_freq_factor);
}

Status parse_yarn(const Fields& fields, const Config& config, RopeParameters* rope) {
  rope->original_max_position_embeddings = config.max_position_embeddings;
  QW_TRY(fields.number("factor", 1, 1e6, kRequired, &rope->factor));
  QW_TRY(fields.integer("original_max_position_embeddings", 1, kMostTokens, kOptional, &rope->original_max_position_embeddings));
  QW_TRY(fields.number("beta_fast", 1e-6, 1e6, kOptional, &rope->beta_fast));
  QW_TRY(fields.number("beta_slow", 1e-6, 1e6, kOptional, &rope->beta_slow));
  QW_TRY(fields.number("attention_factor", 1e-6, 1e6, kOptional, &rope->attention_factor));
  QW_TRY(fields.number("mscale", 0, 1e6, kOptional, &rope->mscale));
  QW_TRY(fields.number("mscale_all_dim", 0, 1e6, kOptional, &rope->mscale_all_dim));
  return fields.boolean("truncate", kOptional, &rope->truncate);
}

// Since transformers 5 everything stands in rope_parameters; before, rope_theta stood at the top level beside rope_scaling.
Status parse_rope(const Fields& fields, Config* config) {
  QW_TRY(fields.number("rope_theta", 1.0001, 1e15, kOptional, &config->rope.rope_theta));
  const bool new_spelling = fields.find("rope_parameters") != nullptr;
  const char* name = new_spelling ? "rope_parameters" : "rope_scaling";
  const Json* object = nullptr;
  QW_TRY(fields.object(name, kOptional, &object));
  if (!object) return {};
  const Fields rope(*object, std::string(kFile) + ": " + name);
  QW_TRY(parse_rope_type(rope, &config->rope));
  QW_TRY(rope.only({"rope_type", "type", "rope_theta", "factor", "original_max_position_embeddings", "beta_fast", "beta_slow", "attention_factor",
                    "mscale", "mscale_all_dim", "truncate", "partial_rotary_factor", "finetuned", "low_freq_factor", "high_freq_factor"}));
  QW_TRY(rope.number("rope_theta", 1.0001, 1e15, kOptional, &config->rope.rope_theta));
  double partial = 1;
  QW_TRY(rope.number("partial_rotary_factor", 0, 1, kOptional, &partial));
  if (partial != 1) return unsupported("partial_rotary_factor", std::to_string(partial), "1");
  switch (config->rope.rope_type) {
    case RopeParameters::Type::kYarn: return parse_yarn(rope, *config, &config->rope);
    case RopeParameters::Type::kLlama3: return parse_llama3(rope, &config->rope);
    default: return {};
  }
}

// Which layers see positions, and how many of them.
Status parse_layer_kinds(const Fields& fields, const Json& json, Config* config) {
  if (config->model_type == "mistral") {
    if (!json.contains("sliding_window")) config->sliding_window = 4096;  // transformers' default; null is none
    return fields.integer("sliding_window", 1, kMostTokens, kOptional, &config->sliding_window);
  }
  if (config->model_type != "smollm3") return {};
  int64_t interval = 4;
  QW_TRY(fields.integer("no_rope_layer_interval", 1, 1024, kOptional, &interval));
  for (int64_t layer = 1; layer <= config->num_hidden_layers; ++layer) config->no_rope_layers.push_back(layer % interval != 0);
  QW_TRY(fields.integers("no_rope_layers", 0, 1, kOptional, &config->no_rope_layers));
  const auto found = static_cast<int64_t>(config->no_rope_layers.size());
  if (found == config->num_hidden_layers) return {};
  return error(Code::kInvalidFile, "%s: no_rope_layers: expected one number for each of %lld layers, found %lld", kFile,
               static_cast<long long>(config->num_hidden_layers), static_cast<long long>(found));
}

// Fields of other families that scale or bend numbers: where one of them stands in a file, it is meant.
constexpr const char* kForeignFields[] = {"attn_logit_softcapping", "final_logit_softcapping", "query_pre_attn_scalar", "attention_multiplier",
                                          "embedding_multiplier",   "residual_multiplier",     "logits_scaling",        "attention_chunk_size"};

// Fields that would change the arithmetic of every token if they were ignored.
Status refuse_other_arithmetic(const Fields& fields) {
  for (const char* name : {"hidden_act", "hidden_activation"}) {
    std::string activation = "silu";
    QW_TRY(fields.text(name, kOptional, &activation));
    if (activation != "silu") return unsupported(name, describe(Json(activation)), "silu");
  }
  for (const char* name : {"attention_bias", "mlp_bias", "use_sliding_window", "use_bidirectional_attention", "rope_interleaved", "use_mrope"}) {
    bool on = false;
    QW_TRY(fields.boolean(name, kOptional, &on));
    if (on) return unsupported(name, "true", "false");
  }
  for (const char* name : kForeignFields) {
    if (const Json* value = fields.find(name)) return unsupported(name, describe(*value), "models without it");
  }
  double partial_rotary_factor = 1;
  QW_TRY(fields.number("partial_rotary_factor", 0, 1, kOptional, &partial_rotary_factor));
  if (partial_rotary_factor != 1) return unsupported("partial_rotary_factor", std::to_string(partial_rotary_factor), "1");
  if (fields.find("quantization_config")) return unsupported("quantization_config", "quantized checkpoints", "BF16, F16 and F32 weights");
  const Json* layer_types = fields.find("layer_types");
  if (!layer_types) return {};
  if (!layer_types->is_array()) return error(Code::kInvalidFile, "%s: layer_types: expected an array, found %s", kFile, describe(*layer_types).c_str());
  for (const Json& type : *layer_types) {
    if (type != "full_attention") return unsupported("layer_types", describe(type), "full_attention");
  }
  return {};
}

}  // namespace

bool Config::is_sparse(int64_t layer) const {
  return num_experts > 0 && (layer + 1) % decoder_sparse_step == 0 &&
         std::find(mlp_only_layers.begin(), mlp_only_layers.end(), layer) == mlp_only_layers.end();
}

Status parse_config(const Json& json, Config* config) {
  const Fields fields(json, kFile);
  QW_TRY(parse_family(fields, config));
  QW_TRY(parse_sizes(fields, config));
  QW_TRY(parse_experts(fields, config));
  QW_TRY(parse_rope(fields, config));
  QW_TRY(parse_layer_kinds(fields, json, config));
  return refuse_other_arithmetic(fields);
}

Status check_runnable(const Config& config, int64_t context_length) {
  if (config.num_experts > 0) {
    return unsupported("architectures", config.architecture, "Qwen3ForCausalLM (a mixture of experts can be inspected, not run)");
  }
  if (config.sliding_window == 0 || context_length <= config.sliding_window) return {};
  const std::string window = std::to_string(config.sliding_window);
  return unsupported("sliding_window", "a window of " + window + " positions in a context of " + std::to_string(context_length),
                     ("windows that never act: contextLength up to " + window).c_str());
}

Status find_end_tokens(const Config& config, const Json& generation_config, std::vector<int64_t>* eos_token_ids) {
  *eos_token_ids = config.eos_token_id;
  if (!generation_config.is_object()) return {};
  return Fields(generation_config, "generation_config.json").integers("eos_token_id", 0, config.vocab_size - 1, kOptional, eos_token_ids);
}

}  // namespace qwasm
