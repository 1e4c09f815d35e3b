// Reads the tokenizer of a GGUF file.
#include "core/text/quote.h"
#include "core/text/tokenizer.h"
#include "core/text/tokenizer_builder.h"

namespace qwasm {
namespace {

constexpr const char* kTokens = "tokenizer.ggml.tokens";
constexpr const char* kMerges = "tokenizer.ggml.merges";

// llama.cpp's kinds of tokens. Unused ones fill the vocabulary up to the embedding's rows.
enum TokenType : int32_t { kNormal = 1, kUnknown = 2, kControl = 3, kUserDefined = 4, kUnused = 5, kByte = 6 };

Status set_pre_tokenizer(const GgufVocabulary& vocabulary, TokenizerBuilder* builder) {
  const PreTokenizer* pre = pre_tokenizer_of(vocabulary.pre);
  if (!pre) return error(Code::kUnsupported, "tokenizer.ggml.pre: the pre-tokenizer %s is not implemented", quote(vocabulary.pre).c_str());
  builder->set_matcher(pre->match);
  builder->set_nfc(pre->nfc);
  builder->set_ignore_merges(pre->ignore_merges);
  const auto ids_of = [](bool add, int64_t id) { return add && id >= 0 && id <= Vocabulary::kMaxId ? std::vector<int32_t>{static_cast<int32_t>(id)} : std::vector<int32_t>(); };
  builder->set_surroundings(ids_of(vocabulary.add_bos_token.value_or(pre->add_bos), vocabulary.bos_token_id),
                            ids_of(vocabulary.add_eos_token, vocabulary.eos_token_id));
  return {};
}

Status add_token(TokenizerBuilder* builder, int64_t id, std::string_view text, int32_t type) {
  if (type < kNormal || type > kByte) {
    return error(Code::kInvalidFile, "tokenizer.ggml.token_type: expected 1 to 6, found %d for the token %s of id %lld", type, quote(text).c_str(),
                 static_cast<long long>(id));
  }
  if (type == kUnused) return {};
  QW_TRY(builder->add_token(id, text));  // added ones too: merges may make them
  if (type == kNormal || type == kByte) return {};
  AddedToken token;
  token.content = text;
  token.special = type != kUserDefined;
  return builder->add_added_token(id, std::move(token));
}

}  // namespace

Status Tokenizer::from_gguf(const GgufVocabulary& vocabulary, std::unique_ptr<Tokenizer>* out) {
  if (vocabulary.model != "gpt2") {
    return error(Code::kUnsupported, "tokenizer.ggml.model: %s is not implemented; expected gpt2 (byte-level BPE)", quote(vocabulary.model).c_str());
  }
  PackedStrings tokens = vocabulary.tokens, merges = vocabulary.merges;
  const std::string_view types = vocabulary.types;
  if (!types.empty() && types.size() / sizeof(int32_t) != tokens.count) {
    return error(Code::kInvalidFile, "tokenizer.ggml.token_type: expected one for each of %llu tokens, found %zu", static_cast<unsigned long long>(tokens.count),
                 types.size() / sizeof(int32_t));
  }
  TokenizerBuilder builder(kTokens, kMerges);
  QW_TRY(set_pre_tokenizer(vocabulary, &builder));
  for (int64_t id = 0; tokens.count > 0; ++id) {
    int32_t type = kNormal;
    if (!types.empty()) std::memcpy(&type, types.data() + static_cast<size_t>(id) * sizeof type, sizeof type);
    QW_TRY(add_token(&builder, id, tokens.next(), type));
  }
  while (merges.count > 0) QW_TRY(builder.add_merge(merges.next()));
  return builder.finish(out);
}

}  // namespace qwasm
