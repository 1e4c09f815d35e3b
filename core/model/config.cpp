// Reads config.json in both of its spellings (before and since transformers 5).
#include "core/model/config.h"

#include <algorithm>

namespace qwasm {

namespace {

constexpr const char* kFile = "config.json";
constexpr auto kRequired = Presence::kRequired;
constexpr auto kOptional = Presence::kOptional;
constexpr int64_t kMostTokens = 1 << 24;

struct Family {
  const char* model_type;
  const char* architecture;
};
constexpr Family kFamilies[] = {{"qwen3", "Qwen3ForCausalLM"}, {"qwen3_moe", "Qwen3MoeForCausalLM"}};

Status unsupported(const char* field, const std::string& found, const char* supported) {
  return error(Code::kUnsupported, "%s: %s: qwasm does not implement %s; it implements %s", kFile, field, found.c_str(), supported);
}

Status parse_family(const Fields& fields, Config* config) {
  QW_TRY(fields.text("model_type", kRequired, &config->model_type));
  const auto* family = std::find_if(std::begin(kFamilies), std::end(kFamilies), [&](const Family& f) { return config->model_type == f.model_type; });
  if (family == std::end(kFamilies)) return unsupported("model_type", describe(Json(config->model_type)), "qwen3 and qwen3_moe");
  config->architecture = family->architecture;
  const Json* architectures = fields.find("architectures");
  const bool same = !architectures || (architectures->is_array() && architectures->size() == 1 && (*architectures)[0] == family->architecture);
  return same ? Status() : unsupported("architectures", to_text(*architectures), family->architecture);
}

Status parse_sizes(const Fields& fields, Config* config) {
  QW_TRY(fields.integer("vocab_size", 1, 1 << 24, kRequired, &config->vocab_size));
  QW_TRY(fields.integer("hidden_size", 1, 1 << 16, kRequired, &config->hidden_size));
  QW_TRY(fields.integer("intermediate_size", 1, 1 << 20, kRequired, &config->intermediate_size));
  QW_TRY(fields.integer("num_hidden_layers", 1, 1024, kRequired, &config->num_hidden_layers));
  QW_TRY(fields.integer("num_attention_heads", 1, 1024, kRequired, &config->num_attention_heads));
  config->num_key_value_heads = config->num_attention_heads;
  QW_TRY(fields.integer("num_key_value_heads", 1, config->num_attention_heads, kOptional, &config->num_key_value_heads));
  QW_TRY(fields.integer("head_dim", 2, 1024, kOptional, &config->head_dim));
  QW_TRY(fields.integer("max_position_embeddings", 1, kMostTokens, kOptional, &config->max_position_embeddings));
  QW_TRY(fields.number("rms_norm_eps", 0, 1, kOptional, &config->rms_norm_eps));
  QW_TRY(fields.boolean("tie_word_embeddings", kOptional, &config->tie_word_embeddings));
  QW_TRY(fields.integers("eos_token_id", 0, config->vocab_size - 1, kOptional, &config->eos_token_id));
  if (config->num_attention_heads % config->num_key_value_heads != 0) {
    return error(Code::kInvalidFile, "%s: num_attention_heads: expected a multiple of num_key_value_heads (%lld), found %lld", kFile,
                 static_cast<long long>(config->num_key_value_heads), static_cast<long long>(config->num_attention_heads));
  }
  if (config->head_dim % 2 != 0) {
    return error(Code::kInvalidFile, "%s: head_dim: expected an even number, found %lld", kFile, static_cast<long long>(config->head_dim));
  }
  return {};
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
  if (type != "default" && type != "yarn") {
    return error(Code::kUnsupported, "%s: rope_type: qwasm does not implement %s; it implements default and yarn", fields.where().c_str(),
                 describe(Json(type)).c_str());
  }
  rope->rope_type = type == "yarn" ? RopeParameters::Type::kYarn : RopeParameters::Type::kDefault;
  return {};
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
                    "mscale", "mscale_all_dim", "truncate", "partial_rotary_factor", "finetuned"}));
  QW_TRY(rope.number("rope_theta", 1.0001, 1e15, kOptional, &config->rope.rope_theta));
  double partial = 1;
  QW_TRY(rope.number("partial_rotary_factor", 0, 1, kOptional, &partial));
  if (partial != 1) return unsupported("partial_rotary_factor", std::to_string(partial), "1");
  return config->rope.rope_type == RopeParameters::Type::kYarn ? parse_yarn(rope, *config, &config->rope) : Status();
}

// Fields that would change the arithmetic of every token if they were ignored.
Status refuse_other_arithmetic(const Fields& fields) {
  std::string hidden_act = "silu";
  QW_TRY(fields.text("hidden_act", kOptional, &hidden_act));
  if (hidden_act != "silu") return unsupported("hidden_act", describe(Json(hidden_act)), "silu");
  for (const char* name : {"attention_bias", "use_sliding_window"}) {
    bool on = false;
    QW_TRY(fields.boolean(name, kOptional, &on));
    if (on) return unsupported(name, "true", "false");
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
  return refuse_other_arithmetic(fields);
}

Status check_runnable(const Config& config) {
  if (config.num_experts == 0) return {};
  return unsupported("architectures", config.architecture, "Qwen3ForCausalLM (a mixture of experts can be inspected, not run)");
}

Status find_end_tokens(const Config& config, const Json& generation_config, std::vector<int64_t>* eos_token_ids) {
  *eos_token_ids = config.eos_token_id;
  if (!generation_config.is_object()) return {};
  return Fields(generation_config, "generation_config.json").integers("eos_token_id", 0, config.vocab_size - 1, kOptional, eos_token_ids);
}

}  // namespace qwasm
