// The course of loading a GGUF model: the beginning of each part until its header is whole, then config, tokenizer and templates out of the first.
#include <algorithm>
#include <cstring>

#include "core/base/hash.h"
#include "core/engine/load.h"
#include "core/files/gguf_config.h"

namespace qwasm {

namespace {

// Texts with which families end an answer: a file names one or two of its end tokens, where generation_config.json lists them all.
constexpr std::string_view kEndTexts[] = {"<|im_end|>", "<|endoftext|>", "<|eot_id|>", "<|eom_id|>", "<|end_of_text|>"};

constexpr std::string_view kTemplate = "tokenizer.chat_template";

// Keys of ids, and the names by which templates know their texts.
struct SpecialToken {
  const char *key, *name;
};
constexpr SpecialToken kSpecialTokens[] = {
    {"tokenizer.ggml.bos_token_id", "bos_token"},
    {"tokenizer.ggml.eos_token_id", "eos_token"},
    {"tokenizer.ggml.unknown_token_id", "unk_token"},
    {"tokenizer.ggml.padding_token_id", "pad_token"},
};

Status read_vocabulary(const GgufMetadata& metadata, const std::string& file, GgufVocabulary* vocabulary) {
  vocabulary->pre = "default";
  QW_TRY(metadata.text(file, "tokenizer.ggml.model", &vocabulary->model));
  QW_TRY(metadata.text(file, "tokenizer.ggml.pre", &vocabulary->pre));
  QW_TRY(metadata.strings(file, "tokenizer.ggml.tokens", &vocabulary->tokens));
  QW_TRY(metadata.strings(file, "tokenizer.ggml.merges", &vocabulary->merges));
  QW_TRY(metadata.integer(file, "tokenizer.ggml.bos_token_id", &vocabulary->bos_token_id));
  QW_TRY(metadata.integer(file, "tokenizer.ggml.eos_token_id", &vocabulary->eos_token_id));
  bool add_bos = false;
  QW_TRY(metadata.boolean(file, "tokenizer.ggml.add_bos_token", &add_bos));
  if (metadata.find("tokenizer.ggml.add_bos_token")) vocabulary->add_bos_token = add_bos;
  QW_TRY(metadata.boolean(file, "tokenizer.ggml.add_eos_token", &vocabulary->add_eos_token));
  const GgufValue* types = metadata.find("tokenizer.ggml.token_type");
  if (!types) return {};
  if (types->type != GgufType::kArray || types->element != GgufType::kI32) {
    return error(Code::kInvalidFile, "%s: tokenizer.ggml.token_type: expected an array of int32", file.c_str());
  }
  vocabulary->types = types->bytes;
  return {};
}

Status append(std::span<const char> more, Buffer<char>* buffer) {
  Buffer<char> grown;
  QW_TRY(grown.allocate(buffer->size() + more.size(), "a GGUF header"));
  if (buffer->size() > 0) std::memcpy(grown.data(), buffer->data(), buffer->size());
  if (!more.empty()) std::memcpy(grown.data() + buffer->size(), more.data(), more.size());
  *buffer = std::move(grown);
  return {};
}

// A sentence that names no file, or the file that a GGUF file plays.
Status in_file(const std::string& file, const char* as, const Status& status) {
  return status.ok() ? Status() : Status(status.code(), file + ": " + as + status.message());
}

}  // namespace

// Headers do not tell their length: what was asked doubles until it holds the header.
Status Loader::read_gguf(const Want& want, std::span<const char> bytes, int64_t file_size) {
  Buffer<char>& beginning = gguf_beginnings_[want.file];
  QW_TRY(append(bytes, &beginning));
  const auto known = static_cast<int64_t>(beginning.size());
  if (static_cast<int64_t>(bytes.size()) < want.length) file_size = known;
  GgufHeader header;
  int64_t needed = 0;
  QW_TRY(parse_gguf_header({beginning.data(), beginning.size()}, want.file, file_size, &header, &needed));
  if (needed > 0) {
    ask(Role::kGguf, want.file, /*optional=*/false, known, std::min(known, kLargestGgufHeader - known));
    return {};
  }
  Buffer<char> whole = std::move(beginning);
  gguf_beginnings_.erase(want.file);
  return take_gguf_part(want.file, std::move(whole), std::move(header));
}

Status Loader::take_gguf_part(const std::string& file, Buffer<char> bytes, GgufHeader header) {
  GgufSplit split;
  QW_TRY(read_gguf_split(header.metadata, file, &split));
  QW_TRY(place_gguf_part(file, split));
  for (auto& [name, tensor] : header.tensors) {
    const auto [place, fresh] = model_->tensors.emplace(hugging_face_name(name), std::move(tensor));
    if (fresh) continue;
    return error(Code::kInvalidFile, "%s: tensor %s stands twice, also in %s", file.c_str(), to_text(Json(name)).c_str(), place->second.file.c_str());
  }
  if (split.number > 0) return {};
  gguf_tensors_ = split.tensors;
  gguf_bytes_ = std::move(bytes);  // the metadata's views stay good: the bytes do not move
  gguf_ = std::move(header);
  return {};
}

// The first part that comes says how many there are, and by its name how the others are called; each must be the one that its name says.
Status Loader::place_gguf_part(const std::string& file, const GgufSplit& split) {
  const bool given = gguf_parts_ == 0;
  const std::string expected = split.count == 1 ? file : gguf_part_name(file, split.number, split.count);
  if (expected != file || (!given && split.count != gguf_parts_)) {
    return error(Code::kInvalidFile, "%s: by split.no and split.count it is part %lld of %lld: expected the name to end with -%05lld-of-%05lld.gguf", file.c_str(),
                 static_cast<long long>(split.number + 1), static_cast<long long>(split.count), static_cast<long long>(split.number + 1),
                 static_cast<long long>(split.count));
  }
  if (!given) return {};
  gguf_parts_ = split.count;
  const bool first_only = options_.parts == Parts::kTokenizer;
  for (int64_t number = 0; number < split.count; ++number) {
    if (number == split.number || (first_only && number > 0)) continue;
    ask(Role::kGguf, gguf_part_name(file, number, split.count), /*optional=*/false, 0, kFirstGgufWant);
  }
  return {};
}

Status Loader::finish_gguf() {
  const auto found = static_cast<int64_t>(model_->tensors.size());
  if (options_.parts != Parts::kTokenizer && gguf_tensors_ >= 0 && gguf_tensors_ != found) {
    return error(Code::kInvalidFile, "%s: split.tensors.count: expected %lld tensors, found %lld", options_.gguf.c_str(), static_cast<long long>(gguf_tensors_),
                 static_cast<long long>(found));
  }
  if (options_.parts != Parts::kTokenizer) QW_TRY(read_gguf_config());
  if (options_.parts != Parts::kHeaders) {
    QW_TRY(read_gguf_tokenizer());
    read_gguf_templates();
  }
  gguf_ = {};
  gguf_bytes_ = {};
  return {};
}

Status Loader::read_gguf_config() {
  GgufTensors tensors;
  const auto embedding = model_->tensors.find("model.embed_tokens.weight");
  if (embedding == model_->tensors.end()) return error(Code::kMissing, "%s: tensor token_embd.weight is missing", options_.gguf.c_str());
  tensors.vocab_size = embedding->second.shape[0];
  tensors.has_head = model_->tensors.contains("lm_head.weight");
  Json json;
  QW_TRY(gguf_config(gguf_.metadata, options_.gguf, tensors, &json));
  QW_TRY(in_file(options_.gguf, "as ", parse_config(json, &model_->config)));
  model_->config.rope.has_factors = model_->tensors.contains("rope_freqs.weight");
  model_->config_hash = hash_bytes(gguf_bytes_.data(), gguf_bytes_.size());
  model_->has_config = true;
  model_->generation_config = gguf_generation_config(gguf_.metadata);
  interleaves_heads_ = gguf_interleaves_heads(gguf_.metadata);
  return options_.parts == Parts::kModel ? check_runnable(model_->config, options_.context_length) : Status();
}

Status Loader::read_gguf_tokenizer() {
  GgufVocabulary vocabulary;
  QW_TRY(read_vocabulary(gguf_.metadata, options_.gguf, &vocabulary));
  if (vocabulary.tokens.count == 0) return {};
  QW_TRY(in_file(options_.gguf, "", Tokenizer::from_gguf(vocabulary, &model_->tokenizer)));
  const std::vector<AddedToken>& added = model_->tokenizer->added_tokens();
  for (const auto& [key, name] : kSpecialTokens) {
    int64_t id = -1;
    QW_TRY(gguf_.metadata.integer(options_.gguf, key, &id));
    const auto token = std::find_if(added.begin(), added.end(), [&](const AddedToken& t) { return t.id == id; });
    if (token != added.end()) model_->special_tokens.emplace(name, token->content);
  }
  std::vector<int64_t>& ends = model_->config.eos_token_id;
  for (const AddedToken& token : added) {
    const bool is_end = token.special && std::find(std::begin(kEndTexts), std::end(kEndTexts), token.content) != std::end(kEndTexts);
    if (is_end && std::find(ends.begin(), ends.end(), token.id) == ends.end()) ends.push_back(token.id);
  }
  return {};
}

void Loader::read_gguf_templates() {
  for (const auto& [key, value] : gguf_.metadata.entries()) {
    if (!key.starts_with(kTemplate) || value.type != GgufType::kString) continue;
    const std::string_view rest = key.substr(kTemplate.size());
    if (rest.empty()) model_->chat_templates["default"] = std::string(value.bytes);
    else if (rest[0] == '.') model_->chat_templates[std::string(rest.substr(1))] = std::string(value.bytes);
  }
}

}  // namespace qwasm
