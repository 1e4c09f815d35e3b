// The metadata of a GGUF file: what config.json, the tokenizer and its settings say, under the names that llama.cpp reads.
#include <algorithm>

#include "core/base/math.h"
#include "core/engine/export.h"

namespace qwasm {

namespace {

struct Name {
  const char* ours;
  const char* gguf;
};

// Token types.
enum : int32_t { kNormal = 1, kControl = 3, kUserDefined = 4, kUnused = 5 };

Status check_rope(const Config& config) {
  const RopeParameters& rope = config.rope;
  if (rope.rope_type == RopeParameters::Type::kYarn && (!rope.truncate || rope.mscale != 0 || rope.mscale_all_dim != 0)) {
    return error(Code::kUnsupported, "GGUF has no words for truncate, mscale and mscale_all_dim of rope_scaling");
  }
  for (int64_t layer = 0; layer < config.num_hidden_layers; ++layer) {
    const bool understood = config.model_type != "smollm3" || (layer + 1) % 4 != 0;  // llama.cpp leaves every fourth one of SmolLM3 out
    if (config.has_rope(layer) != understood) return error(Code::kUnsupported, "GGUF has no words for no_rope_layers other than every fourth");
  }
  return {};
}

// A merge is written "left right".
Status check_merges(const Tokenizer& tokenizer) {
  for (const auto& [left, right] : tokenizer.merges()) {
    for (const int32_t id : {left, right}) {
      if (id == Bpe::kNoToken || tokenizer.token_text(id).find(' ') == std::string_view::npos) continue;
      return error(Code::kUnsupported, "GGUF has no words for a merge of token %d: there is a space in it", id);
    }
  }
  return {};
}

// Beside its tokens a file tells how text is cut, and whether one token goes before it and one behind it.
Status check_tokenizer(const Tokenizer& tokenizer) {
  if (tokenizer.pre_tokenizer().empty()) return error(Code::kUnsupported, "GGUF has no name for how this tokenizer cuts and normalizes text");
  if (tokenizer.begin_ids().size() > 1 || tokenizer.end_ids().size() > 1) {
    return error(Code::kUnsupported, "GGUF has no words for what this tokenizer puts around a text");
  }
  return check_merges(tokenizer);
}

// The id of a special token: by its text in tokenizer_config.json, else by generation_config.json. -1: there is none.
int64_t special_id(const Model& model, const std::string& name) {
  const auto text = model.special_tokens.find(name);
  if (text != model.special_tokens.end()) {
    if (const auto id = model.tokenizer->find(text->second)) return *id;
  }
  int64_t id = -1;
  if (model.generation_config.is_object()) {
    const Fields fields(model.generation_config, "generation_config.json");
    if (!fields.integer((name + "_id").c_str(), 0, model.config.vocab_size - 1, Presence::kOptional, &id).ok()) return -1;
  }
  return id;
}

class MetadataWriter {
 public:
  MetadataWriter(const ExportMetadata& metadata, GgufWriter* out) : metadata_(metadata), model_(metadata.model), out_(*out) {}

  void general(std::string_view architecture, GgmlType main_type) {
    out_.add_string("general.architecture", architecture);
    out_.add_string("general.type", "model");
    if (!metadata_.name.empty()) out_.add_string("general.name", metadata_.name);
    out_.add_u32("general.alignment", kGgufAlignment);
    out_.add_u32("general.quantization_version", 2);
    // Those of whole files: F16 has the number of its tensors' type, and so have the others but for Q8_0.
    out_.add_u32("general.file_type", main_type == GgmlType::kQ8_0 ? 7 : static_cast<int64_t>(main_type));
  }

  // What generation_config.json recommends where it wants tokens drawn.
  void sampling() {
    if (!model_.generation_config.is_object()) return;
    const Fields fields(model_.generation_config, "generation_config.json");
    bool draws = false;
    if (!fields.boolean("do_sample", Presence::kOptional, &draws).ok() || !draws) return;
    static constexpr Name kSampling[] = {{"temperature", "general.sampling.temp"}, {"top_p", "general.sampling.top_p"},
                                         {"min_p", "general.sampling.min_p"}, {"repetition_penalty", "general.sampling.penalty_repeat"}};
    for (const Name& name : kSampling) {
      double value = -1;
      if (fields.number(name.ours, 0, 1e6, Presence::kOptional, &value).ok() && value >= 0) out_.add_f32(name.gguf, value);
    }
    int64_t top_k = -1;
    if (fields.integer("top_k", 0, 1 << 30, Presence::kOptional, &top_k).ok() && top_k >= 0) out_.add_i32("general.sampling.top_k", top_k);
  }

  void shapes() {
    const Config& c = model_.config;
    const std::pair<const char*, int64_t> sizes[] = {{".vocab_size", c.vocab_size},
                                                     {".block_count", c.num_hidden_layers},
                                                     {".context_length", c.max_position_embeddings},
                                                     {".embedding_length", c.hidden_size},
                                                     {".feed_forward_length", c.intermediate_size},
                                                     {".attention.head_count", c.num_attention_heads},
                                                     {".attention.head_count_kv", c.num_key_value_heads},
                                                     {".attention.key_length", c.head_dim},
                                                     {".attention.value_length", c.head_dim},
                                                     {".rope.dimension_count", c.head_dim}};
    for (const auto& [name, value] : sizes) out_.add_u32(name, value);
    out_.add_f32(".attention.layer_norm_rms_epsilon", c.rms_norm_eps);
    if (c.sliding_window > 0) out_.add_u32(".attention.sliding_window", c.sliding_window);
    rope(c.rope);
  }

  void tokenizer() {
    if (!model_.tokenizer) return out_.add_string("tokenizer.ggml.model", "no_vocab");
    out_.add_string("tokenizer.ggml.model", "gpt2");
    out_.add_string("tokenizer.ggml.pre", model_.tokenizer->pre_tokenizer());
    tokens();
    merges();
    special_tokens();
    templates();
  }

 private:
  void rope(const RopeParameters& rope) {
    out_.add_f32(".rope.freq_base", rope.rope_theta);
    if (rope.rope_type != RopeParameters::Type::kYarn) return;
    out_.add_string(".rope.scaling.type", "yarn");
    out_.add_f32(".rope.scaling.factor", rope.factor);
    out_.add_u32(".rope.scaling.original_context_length", rope.original_max_position_embeddings);
    out_.add_f32(".rope.scaling.yarn_beta_fast", rope.beta_fast);
    out_.add_f32(".rope.scaling.yarn_beta_slow", rope.beta_slow);
    // There it multiplies what follows from the factor; here it takes its place.
    if (rope.attention_factor > 0) out_.add_f32(".rope.scaling.attn_factor", rope.attention_factor / (0.1 * log_f64(rope.factor) + 1));
  }

  // As many as the embedding has rows: llama.cpp's converter names the rest [PAD…] too.
  void tokens() {
    const Tokenizer& tokenizer = *model_.tokenizer;
    const int64_t count = model_.config.vocab_size;
    out_.begin_strings("tokenizer.ggml.tokens", count);
    for (int32_t id = 0; id < count; ++id) {
      if (tokenizer.has_token(id)) out_.string(tokenizer.token_text(id));
      else out_.string("[PAD" + std::to_string(id) + ']');
    }
    out_.begin_i32s("tokenizer.ggml.token_type", count);
    auto added = tokenizer.added_tokens().begin();
    for (int32_t id = 0; id < count; ++id) {
      int32_t type = tokenizer.has_token(id) ? kNormal : kUnused;
      if (added != tokenizer.added_tokens().end() && added->id == id) type = added++->special ? kControl : kUserDefined;
      out_.number(type);
    }
  }

  void merges() {
    const auto merges = model_.tokenizer->merges();
    const auto unused = std::count(merges.begin(), merges.end(), std::pair(Bpe::kNoToken, Bpe::kNoToken));
    out_.begin_strings("tokenizer.ggml.merges", static_cast<int64_t>(merges.size()) - unused);
    std::string text;
    for (const auto& [left, right] : merges) {
      if (left == Bpe::kNoToken) continue;
      text = model_.tokenizer->token_text(left);
      text += ' ';
      out_.string(text += model_.tokenizer->token_text(right));
    }
  }

  // GGUF has one end token, of a turn one and of a message one; each of them ends an answer. The first is the one that goes behind a text.
  void special_tokens() {
    const std::vector<int32_t> &before = model_.tokenizer->begin_ids(), &after = model_.tokenizer->end_ids();
    std::vector<int64_t> ends = metadata_.eos_token_ids;
    const int64_t first = after.empty() ? special_id(model_, "eos_token") : after[0];
    const auto place = std::find(ends.begin(), ends.end(), first);
    if (place != ends.end()) std::swap(ends.front(), *place);
    else if (!after.empty()) ends.insert(ends.begin(), first);
    static constexpr const char* kEnds[] = {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"};
    for (size_t i = 0; i < std::min(ends.size(), std::size(kEnds)); ++i) out_.add_u32(kEnds[i], ends[i]);
    if (const int64_t id = before.empty() ? special_id(model_, "bos_token") : before[0]; id >= 0) out_.add_u32("tokenizer.ggml.bos_token_id", id);
    if (const int64_t id = special_id(model_, "pad_token"); id >= 0) out_.add_u32("tokenizer.ggml.padding_token_id", id);
    out_.add_bool("tokenizer.ggml.add_bos_token", !before.empty());
    if (!after.empty()) out_.add_bool("tokenizer.ggml.add_eos_token", true);
  }

  void templates() {
    const auto& templates = model_.chat_templates;
    if (const auto ordinary = templates.find("default"); ordinary != templates.end()) out_.add_string("tokenizer.chat_template", ordinary->second);
    const auto named = static_cast<int64_t>(templates.size() - templates.count("default"));
    if (named == 0) return;
    out_.begin_strings("tokenizer.chat_templates", named);
    for (const auto& [name, text] : templates) {
      if (name != "default") out_.string(name);
    }
    for (const auto& [name, text] : templates) {
      if (name != "default") out_.add_string(("tokenizer.chat_template." + name).c_str(), text);
    }
  }

  const ExportMetadata& metadata_;
  const Model& model_;
  GgufWriter& out_;
};

}  // namespace

Status check_sayable(const Model& model, const GgufArchitecture** architecture) {
  *architecture = gguf_architecture_of(model.config.model_type);
  if (!*architecture) return error(Code::kUnsupported, "model_type %s cannot be written as GGUF", model.config.model_type.c_str());
  QW_TRY(check_rope(model.config));
  return model.tokenizer ? check_tokenizer(*model.tokenizer) : Status();
}

void write_metadata(const ExportMetadata& metadata, const GgufArchitecture& architecture, GgmlType main_type, GgufWriter* out) {
  MetadataWriter writer(metadata, out);
  writer.general(architecture.name, main_type);
  writer.sampling();
  writer.shapes();
  writer.tokenizer();
}

}  // namespace qwasm
