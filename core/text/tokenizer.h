// Text to token ids and back: Hugging Face's byte-level BPE tokenizers, read from their own files.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "core/text/added_tokens.h"
#include "core/text/bpe.h"
#include "core/text/gguf_vocabulary.h"
#include "core/text/pretokenizer.h"
#include "core/text/vocabulary.h"

namespace qwasm {

class Tokenizer {
 public:
  // `json`: the bytes of tokenizer.json. What would change ids and is not implemented is refused by name;
  // truncation and padding are ignored, for they act on whole inputs, not on text.
  static Status from_json(std::span<const char> json, std::unique_ptr<Tokenizer>* out);

  // The files of older folders. `tokenizer_config_json` may be empty: the folder has none, so no added tokens. They are
  // read as Qwen2Tokenizer reads them (its pattern and NFC); another tokenizer_class is refused by name.
  static Status from_vocab_and_merges(std::span<const char> vocab_json, std::span<const char> merges_txt,
                                      std::span<const char> tokenizer_config_json, std::unique_ptr<Tokenizer>* out);

  // Control and unknown tokens become added ones that are special, user-defined tokens such that are not. A kind of tokenizer, or a pre-tokenizer,
  // that is not implemented is refused by name.
  static Status from_gguf(const GgufVocabulary& vocabulary, std::unique_ptr<Tokenizer>* out);

  // `honour_added`: added tokens in the text become their ids; otherwise everything is plain text. `inert_mark`: 0, or
  // a character that keeps the added token in which it stands second from matching; marks themselves are never encoded.
  // Text that is not UTF-8 is kInvalidArgument. Never adds tokens that are not in the text: that is the caller's to do.
  Status encode(std::string_view text, bool honour_added, char32_t inert_mark, std::vector<int32_t>* ids) const;

  // What the file's post_processor puts around a whole text: Llama 3's <|begin_of_text|>. Mostly nothing.
  const std::vector<int32_t>& begin_ids() const { return begin_ids_; }
  const std::vector<int32_t>& end_ids() const { return end_ids_; }

  // How many bytes of plain text are encoded the same whatever follows them: all but the last pre-token, or
  // two where they could become a contraction.
  size_t settled_bytes(std::string_view text) const;

  // UTF-8; bytes that are not become U+FFFD, one per maximal cut-off sequence. Ids without a token give nothing.
  std::string decode(std::span<const int32_t> ids, bool skip_special) const;

  const std::vector<AddedToken>& added_tokens() const { return added_; }  // ordered by id
  bool has_token(int32_t id) const { return vocabulary_.has(id); }
  int32_t id_limit() const { return vocabulary_.id_limit(); }  // one past the largest id that has a token
  size_t token_count() const { return vocabulary_.size(); }
  // By text; for ordinary tokens that is written in the byte alphabet ("Ġthe").
  std::optional<int32_t> find(std::string_view content) const { return vocabulary_.find(content); }

  // What GGUF files call how it cuts and normalizes text; empty where they have no name for it.
  std::string_view pre_tokenizer() const { return pre_tokenizer_name(match_piece_, nfc_, ignore_merges_); }
  // As the vocabulary has it, mostly written in the byte alphabet; of an id that has a token.
  std::string_view token_text(int32_t id) const { return vocabulary_.text(id); }
  // Left and right of each merge, by rank; Bpe::kNoToken where a rank is not used.
  std::vector<std::pair<int32_t, int32_t>> merges() const { return bpe_.merges(); }

  // The bytes that one token stands for, which need not be whole characters. Nothing for an id that has no token.
  void append_bytes(int32_t id, bool skip_special, std::string* out) const;

 private:
  friend class TokenizerBuilder;
  Tokenizer() = default;

  void encode_plain(std::string_view text, std::string_view mark, std::vector<int32_t>* ids) const;
  std::optional<int32_t> whole_token(std::string_view piece) const;

  Vocabulary vocabulary_;
  Bpe bpe_;
  PieceMatcher match_piece_ = nullptr;
  bool nfc_ = false, ignore_merges_ = false;
  std::vector<int32_t> begin_ids_, end_ids_;
  std::vector<AddedToken> added_;
  std::vector<bool> is_special_;  // by id
  AddedTokenMatcher added_raw_, added_normalized_;
};

}  // namespace qwasm
