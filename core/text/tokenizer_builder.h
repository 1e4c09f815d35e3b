// Puts a Tokenizer together from tokens and merges given one by one, whatever file they come from.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "core/text/added_tokens.h"
#include "core/text/pretokenizer.h"
#include "core/text/tokenizer.h"
#include "core/text/vocabulary.h"

namespace qwasm {

class TokenizerBuilder {
 public:
  // The files that sentences about tokens and about merges begin with; literals.
  TokenizerBuilder(const char* vocab_file, const char* merges_file)
      : vocab_file_(vocab_file), merges_file_(merges_file) {}

  // `text` is written in the byte alphabet.
  Status add_token(int64_t id, std::string_view text);
  // In order of rank. The tokens need not be known yet.
  Status add_merge(std::string_view left, std::string_view right);
  // The form "left right".
  Status add_merge(std::string_view pair);
  Status add_added_token(int64_t id, AddedToken token);

  // The regular expression that cuts text into pieces; one that is not known is kUnsupported.
  Status set_pattern(const char* file, std::string_view pattern);
  void set_matcher(PieceMatcher match) { match_piece_ = match; }
  void set_nfc(bool nfc) { nfc_ = nfc; }
  // A piece that is a token as it stands becomes that token, whatever merging would give.
  void set_ignore_merges(bool ignore) { ignore_merges_ = ignore; }
  // What stands around a whole text, as Tokenizer::begin_ids and end_ids say.
  void set_surroundings(std::vector<int32_t> begin_ids, std::vector<int32_t> end_ids) {
    begin_ids_ = std::move(begin_ids);
    end_ids_ = std::move(end_ids);
  }
  // What would become of a byte that has no token: with an option named here (a literal), something not implemented.
  void set_unknown_option(const char* option) { unknown_option_ = option; }

  Status finish(std::unique_ptr<Tokenizer>* out);

 private:
  Status check_id(int64_t id, std::string_view text) const;
  Status resolve_bytes(Tokenizer* tokenizer) const;
  Status resolve_merges(Tokenizer* tokenizer) const;
  Status resolve_added_tokens();
  Status check_surroundings() const;

  struct MergeText {
    uint32_t left_length, right_length;  // side by side in merge_pool_
  };

  const char* vocab_file_;
  const char* merges_file_;
  const char* unknown_option_ = nullptr;
  PieceMatcher match_piece_ = nullptr;
  bool nfc_ = false, ignore_merges_ = false;
  std::vector<int32_t> begin_ids_, end_ids_;
  Vocabulary vocabulary_;
  std::vector<AddedToken> added_;
  std::string merge_pool_;
  std::vector<MergeText> merges_;
};

}  // namespace qwasm
