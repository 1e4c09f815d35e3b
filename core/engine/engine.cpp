// Makes a loaded model ready, and tells what it is.
#include "core/engine/engine.h"

#include <algorithm>
#include <charconv>
#include <set>

#include "core/base/hash.h"
#include "core/engine/bandwidth.h"
#include "core/engine/choose_threads.h"
#include "core/engine/inspect.h"

namespace qwasm {

namespace {

constexpr int64_t kLongestContext = 1 << 24;
constexpr auto kOptional = Presence::kOptional;
constexpr int64_t kSampledBytes = 4096;  // of each matrix, for a model's identity: 0.8 MB of Qwen3-0.6B

const char* dtype_name(Loader::DType dtype) { return Loader::kDTypeNames[static_cast<int>(dtype)]; }

const char* cache_format_name(CacheFormat format) { return kCacheFormatNames[static_cast<int>(format)]; }

// What decides the keys and values of a token: config.json, how weights and cache are stored, and a part of every layer's weights, in which one training
// differs from another.
std::string identity_of(const Model& model, const std::string& layout, CacheFormat format) {
  uint64_t hash = hash_bytes(&format, sizeof format, hash_bytes(layout.data(), layout.size(), model.config_hash));
  for (const LayerWeights& w : model.weights.layers) {
    for (const Matrix* m : {&w.q_proj, &w.k_proj, &w.v_proj, &w.o_proj, &w.gate_proj, &w.up_proj, &w.down_proj}) {
      hash = hash_bytes(m->data, static_cast<size_t>(std::min(kSampledBytes, matrix_bytes(m->format, m->rows, m->columns))), hash);
    }
  }
  char text[24];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash));
  return text;
}

int64_t default_context(const Config& c) {
  const int64_t most = std::min(c.max_position_embeddings, Loader::kDefaultContext);
  return c.sliding_window > 0 ? std::min(most, c.sliding_window) : most;
}

Status one_of(const Fields& fields, const char* name, std::initializer_list<const char*> choices, std::string* out) {
  QW_TRY(fields.text(name, kOptional, out));
  std::string all;
  for (const char* choice : choices) {
    if (*out == choice) return {};
    all += (all.empty() ? "" : ", ") + std::string(choice);
  }
  return error(Code::kInvalidArgument, "%s: %s: expected one of %s, found %s", fields.where().c_str(), name, all.c_str(), describe(Json(*out)).c_str());
}

// A JSON view calls a field that does not fit an invalid file; here it is an invalid argument.
Status as_argument(const Status& status) { return status.ok() ? Status() : Status(Code::kInvalidArgument, status.message()); }

Status read_engine_options(std::string_view text, EngineOptions* options) {
  Json json;
  QW_TRY(parse_json_object(text, "options", &json));
  const Fields fields(json, "options");
  QW_TRY(fields.only({"parts", "dtype", "kv", "context_length", "threads", "choose_threads", "memory_budget", "gguf"}));
  std::string parts = "model", dtype = "auto", kv = "auto";
  QW_TRY(one_of(fields, "parts", {"model", "tokenizer", "headers"}, &parts));
  QW_TRY(one_of(fields, "dtype", {"auto", "exact", "q8", "q4", "stored"}, &dtype));
  QW_TRY(one_of(fields, "kv", {"auto", "f32", "f16", "q8"}, &kv));
  for (size_t i = 0; i < std::size(Loader::kDTypeNames); ++i) {
    if (dtype == Loader::kDTypeNames[i]) options->load.dtype = static_cast<Loader::DType>(i);
  }
  options->load.parts = parts == "model" ? Loader::Parts::kModel : parts == "tokenizer" ? Loader::Parts::kTokenizer : Loader::Parts::kHeaders;
  for (const auto choice : {CacheFormat::kF32, CacheFormat::kF16, CacheFormat::kQ8}) {
    if (kv == cache_format_name(choice)) options->kv = choice;
  }
  QW_TRY(fields.text("gguf", kOptional, &options->load.gguf));
  QW_TRY(fields.integer("memory_budget", 0, int64_t{1} << 53, kOptional, &options->load.memory_budget));
  QW_TRY(fields.integer("context_length", 1, kLongestContext, kOptional, &options->load.context_length));
  QW_TRY(fields.boolean("choose_threads", kOptional, &options->choose_threads));
  return fields.integer("threads", 1, 1 << 16, kOptional, &options->threads);
}

// {"id": bias}, whose ids are written as JSON numbers are.
Status read_logit_bias(const Json& object, std::vector<std::pair<int32_t, float>>* out) {
  const Fields fields(object, "options: logit_bias");
  for (auto entry = object.begin(); entry != object.end(); ++entry) {
    const std::string& key = entry.key();
    int32_t id = -1;
    std::from_chars(key.data(), key.data() + key.size(), id);
    if (id < 0 || std::to_string(id) != key) {
      return error(Code::kInvalidArgument, "options: logit_bias: expected token ids as keys, found %s", describe(Json(key)).c_str());
    }
    double bias = 0;
    QW_TRY(fields.number(key.c_str(), -100, 100, Presence::kRequired, &bias));
    out->emplace_back(id, static_cast<float>(bias));
  }
  return {};
}

Status read_sampling_options(std::string_view text, SamplingOptions* options) {
  Json json;
  QW_TRY(parse_json_object(text, "options", &json));
  const Fields fields(json, "options");
  QW_TRY(fields.only({"temperature", "top_k", "top_p", "min_p", "repetition_penalty", "presence_penalty", "frequency_penalty", "logit_bias", "seed"}));
  int64_t seed = 0;
  QW_TRY(fields.number("temperature", 0, 1e6, kOptional, &options->temperature));
  QW_TRY(fields.integer("top_k", 0, 1 << 30, kOptional, &options->top_k));
  QW_TRY(fields.number("top_p", 0, 1, kOptional, &options->top_p));
  QW_TRY(fields.number("min_p", 0, 1, kOptional, &options->min_p));
  QW_TRY(fields.number("repetition_penalty", 1e-6, 1e6, kOptional, &options->repetition_penalty));
  QW_TRY(fields.number("presence_penalty", -2, 2, kOptional, &options->presence_penalty));
  QW_TRY(fields.number("frequency_penalty", -2, 2, kOptional, &options->frequency_penalty));
  const Json* logit_bias = nullptr;
  QW_TRY(fields.object("logit_bias", kOptional, &logit_bias));
  if (logit_bias) QW_TRY(read_logit_bias(*logit_bias, &options->logit_bias));
  QW_TRY(fields.integer("seed", 0, (int64_t{1} << 53) - 1, kOptional, &seed));
  options->seed = static_cast<uint64_t>(seed);
  return {};
}

}  // namespace

Status parse_engine_options(std::string_view json, EngineOptions* options) { return as_argument(read_engine_options(json, options)); }
Status parse_sampling_options(std::string_view json, SamplingOptions* options) { return as_argument(read_sampling_options(json, options)); }

Status Engine::finish_loading() {
  if (!loader_.loaded() || ready_) return {};
  if (options_.load.parts == Loader::Parts::kModel) {
    QW_TRY(find_end_tokens(model_.config, model_.generation_config, &eos_token_ids_));
    const int64_t limit = model_.config.max_position_embeddings;
    context_length_ = options_.load.context_length > 0 ? options_.load.context_length : default_context(model_.config);
    if (context_length_ > limit) {
      model_.notes.push_back("contextLength " + std::to_string(context_length_) + " is beyond the model's max_position_embeddings " +
                             std::to_string(limit) + "; answers may lose quality past it");
    }
    const Kernels& kernels = default_kernels(model_.weights.formats);
    forward_ = std::make_unique<Forward>(model_.config, model_.weights, kernels, pool_);
    QW_TRY(forward_->prepare());
    if (options_.choose_threads) QW_TRY(choose_threads(model_.config, model_.weights, kernels, pool_));
  }
  ready_ = true;
  return {};
}

Status Engine::require_loaded() const { return ready_ ? Status() : error(Code::kWrongState, "the model is not loaded"); }

Status Engine::require_weights() const {
  QW_TRY(require_loaded());
  return forward_ ? Status() : error(Code::kWrongState, "the model was loaded without its weights");
}

Status Engine::tokenizer(const Tokenizer** tokenizer) const {
  QW_TRY(require_loaded());
  *tokenizer = model_.tokenizer.get();
  if (*tokenizer) return {};
  return error(Code::kNoTokenizer, "this model came without a tokenizer (tokenizer.json, or vocab.json with merges.txt); it takes and gives ids only");
}

CacheFormat Engine::cache_format() const {
  const bool exact = loader_.dtype() == Loader::DType::kExact || model_.weights.formats.only_floats();
  return options_.kv.value_or(exact ? CacheFormat::kF32 : CacheFormat::kF16);
}

Status Engine::new_session(std::unique_ptr<Session>* session) {
  QW_TRY(require_weights());
  *session = std::make_unique<Session>(model_.config, cache_format(), context_length_, *forward_, model_.tokenizer.get());
  return {};
}

// Grammars are kept with their masks: calls mostly come back with one that was used before.
Status Engine::grammar(const Tokenizer& tokenizer, std::string_view gbnf, std::shared_ptr<Grammar>* grammar) {
  for (const KeptGrammar& kept : grammars_) {
    *grammar = kept.grammar;
    if (kept.grammar && kept.text == gbnf) return {};
  }
  if (!token_table_) {
    std::string bytes;
    std::vector<uint32_t> ends;
    const std::vector<AddedToken>& added = tokenizer.added_tokens();  // by id
    size_t next = 0;
    for (int32_t id = 0; id < tokenizer.id_limit(); ++id) {
      if (next < added.size() && added[next].id == id) ++next;
      else tokenizer.append_bytes(id, false, &bytes);
      ends.push_back(static_cast<uint32_t>(bytes.size()));
    }
    token_table_ = std::make_unique<TokenTable>(std::move(bytes), ends);
  }
  std::unique_ptr<Grammar> made;
  QW_TRY(Grammar::make(gbnf, *token_table_, eos_token_ids_, model_.config.vocab_size, &made));
  KeptGrammar& kept = grammars_[oldest_grammar_++ % kKeptGrammars];
  kept.text = gbnf;
  *grammar = kept.grammar = std::move(made);
  return {};
}

Status Engine::set_grammar(Session& session, const char* gbnf) {
  session.set_grammar(nullptr);
  if (!gbnf) return {};
  const Tokenizer* text = nullptr;
  QW_TRY(tokenizer(&text));
  std::shared_ptr<Grammar> made;
  QW_TRY(grammar(*text, gbnf, &made));
  session.set_grammar(std::make_unique<GrammarGuide>(std::move(made), *text, eos_token_ids_));
  return {};
}

Status Engine::read_bandwidth(double* bytes_per_second) {
  QW_TRY(require_weights());
  *bytes_per_second = qwasm::read_bandwidth(model_.weights, pool_);
  return {};
}

Status Engine::export_gguf(std::string_view name, std::unique_ptr<GgufExport>* file) {
  QW_TRY(require_weights());
  return GgufExport::make(model_, {model_, eos_token_ids_, std::string(name)}, file);
}

Status Engine::inspect(int64_t context, double bandwidth, std::string* json) const {
  QW_TRY(require_loaded());
  if (!model_.has_config) return error(Code::kWrongState, "only the tokenizer was loaded");
  *json = to_text(qwasm::inspect(model_, context, bandwidth));
  return {};
}

Status Engine::info(std::string* json) const {
  QW_TRY(require_loaded());
  Json added = Json::array();
  if (model_.tokenizer) {
    for (const AddedToken& token : model_.tokenizer->added_tokens()) added.push_back({{"id", token.id}, {"content", token.content}, {"special", token.special}});
  }
  Json info = {{"has_tokenizer", model_.tokenizer != nullptr},
               {"added_tokens", added},
               {"begin_ids", model_.tokenizer ? model_.tokenizer->begin_ids() : std::vector<int32_t>()},
               {"end_ids", model_.tokenizer ? model_.tokenizer->end_ids() : std::vector<int32_t>()},
               {"known_tokens", model_.tokenizer ? model_.tokenizer->id_limit() : 0},
               {"chat_templates", model_.chat_templates},
               {"special_tokens", model_.special_tokens},
               {"notes", model_.notes}};
  if (options_.load.parts == Loader::Parts::kModel) {
    const Config& c = model_.config;
    std::set<std::string> dtypes;
    for (const auto& [name, tensor] : model_.tensors) dtypes.insert(tensor.dtype);
    info.update(numbers_object({{"parameters", count_parameters(c)},
                                {"layers", c.num_hidden_layers},
                                {"hidden_size", c.hidden_size},
                                {"vocab_size", c.vocab_size},
                                {"max_position_embeddings", c.max_position_embeddings},
                                {"context_length", context_length_},
                                {"key_value_heads", c.num_key_value_heads},
                                {"weight_bytes", static_cast<int64_t>(model_.weights.memory.size())},
                                {"kv_bytes_per_token", KvCache::bytes_per_token(c, cache_format())},
                                {"threads", pool_.used()}}));
    info["architecture"] = c.architecture;
    info["model_type"] = c.model_type;
    info["dtype"] = dtype_name(loader_.dtype());
    info["kv"] = cache_format_name(cache_format());
    info["stored_dtypes"] = dtypes;
    info["kernels"] = default_kernels(model_.weights.formats).name;
    info["identity"] = identity_of(model_, loader_.weights_layout(), cache_format());
    info["eos_token_ids"] = eos_token_ids_;
    info["generation_config"] = model_.generation_config;
  }
  *json = to_text(info);
  return {};
}

}  // namespace qwasm
