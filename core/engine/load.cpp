// The course of loading: which file is wanted after which, and what is done with its bytes.
#include "core/engine/load.h"

#include "core/base/hash.h"

namespace qwasm {

namespace {

std::vector<char> copy(std::span<const char> bytes) { return {bytes.begin(), bytes.end()}; }

// tokenizer_config.json holds one template, or a list of named ones.
Status read_chat_templates(const Json& tokenizer_config, const std::string& file, std::map<std::string, std::string>* templates) {
  const Json* value = Fields(tokenizer_config, file).find("chat_template");
  if (!value) return {};
  if (const auto* text = value->get_ptr<const Json::string_t*>()) {
    templates->emplace("default", *text);
    return {};
  }
  if (!value->is_array()) {
    return error(Code::kInvalidFile, "%s: chat_template: expected a string or an array, found %s", file.c_str(), describe(*value).c_str());
  }
  for (const Json& entry : *value) {
    if (!entry.is_object()) return error(Code::kInvalidFile, "%s: chat_template: expected objects, found %s", file.c_str(), describe(entry).c_str());
    const Fields fields(entry, file + ": chat_template");
    std::string name, text;
    QW_TRY(fields.text("name", Presence::kRequired, &name));
    QW_TRY(fields.text("template", Presence::kRequired, &text));
    templates->emplace(std::move(name), std::move(text));
  }
  return {};
}

// Texts by the names that templates know: the fields named like eos_token, which hold a text or an object with one.
void read_special_tokens(const Json& tokenizer_config, std::map<std::string, std::string>* tokens) {
  for (auto field = tokenizer_config.begin(); field != tokenizer_config.end(); ++field) {
    const Json* value = &*field;
    if (!field.key().ends_with("_token")) continue;
    if (value->is_object() && value->contains("content")) value = &(*value)["content"];
    if (const auto* text = value->get_ptr<const Json::string_t*>()) tokens->emplace(field.key(), *text);
  }
}

}  // namespace

Loader::Loader(const Options& options, ThreadPool& pool, Model* model) : options_(options), pool_(pool), model_(model) {
  if (!options.gguf.empty()) {
    ask(Role::kGguf, options.gguf, /*optional=*/false, 0, kFirstGgufWant);
    return;
  }
  const Parts parts = options.parts;
  const bool tokenizer_only = parts == Parts::kTokenizer;
  if (!tokenizer_only) ask(Role::kConfig, "config.json", /*optional=*/false);
  if (parts != Parts::kHeaders) {
    if (!tokenizer_only) ask(Role::kGenerationConfig, "generation_config.json", /*optional=*/true);
    ask(Role::kChatTemplate, "chat_template.jinja", /*optional=*/true);
    ask(Role::kTokenizerConfig, "tokenizer_config.json", /*optional=*/true);
    ask(Role::kTokenizer, "tokenizer.json", /*optional=*/true);
  }
  if (!tokenizer_only) ask(Role::kPrefix, "model.safetensors", /*optional=*/true, 0, kSafetensorsPrefix);
}

void Loader::ask(Role role, std::string file, bool optional, int64_t offset, int64_t length) {
  const uint32_t id = next_id_++;
  pending_.emplace(id, Pending{{std::move(file), offset, length, optional}, role, {}});
  ready_.push_back(id);
}

const Loader::Want* Loader::next(uint32_t* id) {
  if (ready_.empty() || failed_) return nullptr;
  *id = ready_.front();
  ready_.pop_front();
  return &pending_.find(*id)->second.want;
}

Status Loader::require_no_failure() const {
  return failed_ ? error(Code::kWrongState, "loading has failed; only freeing the engine is left") : Status();
}

Status Loader::take(uint32_t id, Pending* pending) {
  QW_TRY(require_no_failure());
  const auto found = pending_.find(id);
  if (found == pending_.end()) return error(Code::kInvalidArgument, "want %u is not open", id);
  *pending = std::move(found->second);
  pending_.erase(found);
  return {};
}

Status Loader::push(uint32_t id, std::span<const char> bytes, int64_t file_size) {
  Pending pending;
  QW_TRY(take(id, &pending));
  Status status = answer(pending, bytes, file_size);
  if (status.ok()) status = advance();
  failed_ = !status.ok();
  return status;
}

Status Loader::push_missing(uint32_t id) {
  Pending pending;
  QW_TRY(take(id, &pending));
  Status status = answer_missing(pending);
  if (status.ok()) status = advance();
  failed_ = !status.ok();
  return status;
}

Status Loader::answer_missing(const Pending& pending) {
  const Want& want = pending.want;
  if (!want.optional) return error(Code::kMissing, "%s: the file is missing", want.file.c_str());
  switch (pending.role) {
    case Role::kTokenizer:
      ask(Role::kVocab, "vocab.json", /*optional=*/true);
      ask(Role::kMerges, "merges.txt", /*optional=*/true);
      return {};
    case Role::kPrefix:
      ask(Role::kIndex, "model.safetensors.index.json", /*optional=*/true);
      return {};
    case Role::kIndex:
      if (options_.parts == Parts::kHeaders) return {};
      return error(Code::kMissing, "no weights: neither model.safetensors nor model.safetensors.index.json exists");
    default: return {};
  }
}

Status Loader::check_length(const Pending& pending, std::span<const char> bytes, int64_t file_size) const {
  const Want& want = pending.want;
  const auto found = static_cast<int64_t>(bytes.size());
  if (want.length == 0 || found == want.length) return {};
  if (found < want.length && (pending.role == Role::kPrefix || pending.role == Role::kGguf)) return {};
  if (found > want.length) {
    return error(Code::kInvalidArgument, "%s: %lld bytes were asked at %lld, %lld were pushed", want.file.c_str(),
                 static_cast<long long>(want.length), static_cast<long long>(want.offset), static_cast<long long>(found));
  }
  return error(Code::kInvalidFile, "%s: cut: bytes %lld to %lld were expected, found only %lld of them (file size %lld)", want.file.c_str(),
               static_cast<long long>(want.offset), static_cast<long long>(want.offset + want.length), static_cast<long long>(found),
               static_cast<long long>(file_size));
}

Status Loader::answer(const Pending& pending, std::span<const char> bytes, int64_t file_size) {
  QW_TRY(check_length(pending, bytes, file_size));
  const Want& want = pending.want;
  switch (pending.role) {
    case Role::kPrefix: return read_prefix(want, bytes, file_size);
    case Role::kHeader: return parse_safetensors_header(bytes, want.file, file_size, &model_->tensors);
    case Role::kIndex: return read_index(want, bytes);
    case Role::kGguf: return read_gguf(want, bytes, file_size);
    case Role::kRows: return take_rows(pending, bytes);
    default: return parse_text_file(pending, bytes);
  }
}

Status Loader::parse_text_file(const Pending& pending, std::span<const char> bytes) {
  const std::string& file = pending.want.file;
  Json json;
  switch (pending.role) {
    case Role::kConfig:
      QW_TRY(parse_json_object(bytes, file, &json));
      QW_TRY(parse_config(json, &model_->config));
      model_->config_hash = hash_bytes(bytes.data(), bytes.size());
      model_->has_config = true;
      return options_.parts == Parts::kModel ? check_runnable(model_->config, options_.context_length) : Status();
    case Role::kGenerationConfig: return parse_json_object(bytes, file, &model_->generation_config);
    case Role::kTokenizer: return Tokenizer::from_json(bytes, &model_->tokenizer);
    case Role::kTokenizerConfig: {
      QW_TRY(parse_json_object(bytes, file, &json));
      tokenizer_config_ = copy(bytes);
      std::map<std::string, std::string> templates;
      QW_TRY(read_chat_templates(json, file, &templates));
      read_special_tokens(json, &model_->special_tokens);
      model_->chat_templates.merge(templates);  // does not replace chat_template.jinja, whichever came first
      return {};
    }
    case Role::kChatTemplate: model_->chat_templates["default"] = std::string(bytes.begin(), bytes.end()); return {};
    case Role::kVocab:
      vocab_ = copy(bytes);
      has_vocab_ = true;
      return {};
    case Role::kMerges:
      merges_ = copy(bytes);
      has_merges_ = true;
      return {};
    default: return {};
  }
}

Status Loader::read_prefix(const Want& want, std::span<const char> bytes, int64_t file_size) {
  int64_t header_length = 0;
  QW_TRY(parse_safetensors_prefix(bytes, want.file, file_size, &header_length));
  ask(Role::kHeader, want.file, /*optional=*/false, kSafetensorsPrefix, header_length);
  return {};
}

Status Loader::read_index(const Want& want, std::span<const char> bytes) {
  QW_TRY(parse_shard_index(bytes, want.file, &weight_map_));
  std::map<std::string, bool> shards;
  for (const auto& [tensor, file] : weight_map_) shards[file] = true;
  for (const auto& [file, asked] : shards) ask(Role::kPrefix, file, /*optional=*/false, 0, kSafetensorsPrefix);
  return {};
}

// What becomes possible when everything asked so far has come.
Status Loader::advance() {
  if (!pending_.empty() || loaded_) return {};
  if (!planned_) {
    planned_ = true;
    if (!options_.gguf.empty()) QW_TRY(finish_gguf());
    QW_TRY(finish_tokenizer());
    if (options_.parts != Parts::kTokenizer) QW_TRY(finish_headers());
  }
  loaded_ = pending_.empty();
  return {};
}

Status Loader::finish_tokenizer() {
  if (options_.parts == Parts::kHeaders) return {};
  if (!model_->tokenizer && has_vocab_ != has_merges_) {
    return error(Code::kMissing, "%s: the file is missing, though %s is there", has_vocab_ ? "merges.txt" : "vocab.json", has_vocab_ ? "vocab.json" : "merges.txt");
  }
  if (!model_->tokenizer && has_vocab_) QW_TRY(Tokenizer::from_vocab_and_merges(vocab_, merges_, tokenizer_config_, &model_->tokenizer));
  for (std::vector<char>* bytes : {&vocab_, &merges_, &tokenizer_config_}) std::vector<char>().swap(*bytes);
  if (!model_->tokenizer) {
    return options_.parts == Parts::kModel ? Status() : error(Code::kMissing, options_.gguf.empty() ? "no tokenizer: neither tokenizer.json nor vocab.json with merges.txt exists" : "no tokenizer: the GGUF file has no tokens");
  }
  if (model_->has_config && model_->tokenizer->id_limit() > model_->config.vocab_size) {
    return error(Code::kInvalidFile, "the tokenizer has ids up to %d, but config.json's vocab_size is %lld", model_->tokenizer->id_limit() - 1,
                 static_cast<long long>(model_->config.vocab_size));
  }
  return {};
}

Status Loader::finish_headers() {
  model_->has_headers = !model_->tensors.empty();
  for (const auto& [tensor, file] : weight_map_) {
    const auto found = model_->tensors.find(tensor);
    if (found == model_->tensors.end() || found->second.file != file) {
      return error(Code::kMissing, "%s: tensor %s is missing, though model.safetensors.index.json says it is there", file.c_str(), tensor.c_str());
    }
  }
  if (options_.parts != Parts::kModel) return {};
  slots_ = weight_slots(model_->config, model_->tensors, &model_->weights);
  if (options_.dtype == DType::kAuto) options_.dtype = options_.gguf.empty() ? choose_dtype() : DType::kStored;
  std::vector<const TensorInfo*> found;
  QW_TRY(find_tensors(&found));
  QW_TRY(place_weights(found));
  plan_runs(found);
  return {};
}

}  // namespace qwasm
