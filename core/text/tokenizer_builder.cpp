// From tokens and merges to a Tokenizer: see tokenizer_builder.h.
#include "core/text/tokenizer_builder.h"

#include <algorithm>
#include <utility>

#include "core/base/sort.h"
#include "core/text/byte_alphabet.h"
#include "core/text/quote.h"
#include "core/text/unicode.h"

namespace qwasm {

Status TokenizerBuilder::check_id(int64_t id, std::string_view text) const {
  if (find_invalid_utf8(text) != std::string_view::npos) {
    return error(Code::kInvalidFile, "%s: the token %s of id %lld is not UTF-8", vocab_file_, quote(text).c_str(),
                 static_cast<long long>(id));
  }
  if (id < 0 || id > Vocabulary::kMaxId) {
    return error(Code::kInvalidFile, "%s: the token %s has the id %lld; expected 0 to %d", vocab_file_,
                 quote(text).c_str(), static_cast<long long>(id), Vocabulary::kMaxId);
  }
  return {};
}

Status TokenizerBuilder::add_token(int64_t id, std::string_view text) {
  QW_TRY(check_id(id, text));
  if (!vocabulary_.add(static_cast<int32_t>(id), text)) {
    return error(Code::kInvalidFile, "%s: the token %s stands twice in the vocabulary", vocab_file_,
                 quote(text).c_str());
  }
  return {};
}

Status TokenizerBuilder::add_merge(std::string_view left, std::string_view right) {
  merges_.push_back({static_cast<uint32_t>(left.size()), static_cast<uint32_t>(right.size())});
  merge_pool_.append(left).append(right);
  return {};
}

Status TokenizerBuilder::add_merge(std::string_view pair) {
  const size_t space = pair.find(' ');
  if (space == std::string_view::npos || pair.find(' ', space + 1) != std::string_view::npos) {
    return error(Code::kInvalidFile, "%s: merge %zu is %s; expected two tokens with one space between them",
                 merges_file_, merges_.size() + 1, quote(pair).c_str());
  }
  return add_merge(pair.substr(0, space), pair.substr(space + 1));
}

Status TokenizerBuilder::add_added_token(int64_t id, AddedToken token) {
  QW_TRY(check_id(id, token.content));
  token.id = static_cast<int32_t>(id);
  added_.push_back(std::move(token));
  return {};
}

Status TokenizerBuilder::set_pattern(const char* file, std::string_view pattern) {
  match_piece_ = find_piece_matcher(pattern);
  if (match_piece_ != nullptr) return {};
  return error(Code::kUnsupported, "%s: the pre-tokenizer pattern %s is not implemented", file,
               quote(pattern, 2000).c_str());
}

Status TokenizerBuilder::resolve_bytes(Tokenizer* tokenizer) const {
  std::array<int32_t, 256> tokens;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    std::string text;
    append_utf8(byte_to_char(static_cast<uint8_t>(byte)), &text);
    tokens[byte] = vocabulary_.find(text).value_or(Bpe::kNoToken);
    if (tokens[byte] == Bpe::kNoToken && unknown_option_ != nullptr) {
      return error(Code::kUnsupported, "%s: model.%s is not implemented, and the byte 0x%02x has no token of its own",
                   vocab_file_, unknown_option_, byte);
    }
  }
  tokenizer->bpe_.set_byte_tokens(tokens);
  return {};
}

Status TokenizerBuilder::resolve_merges(Tokenizer* tokenizer) const {
  if (merges_.empty()) return error(Code::kInvalidFile, "%s: has no merges", merges_file_);
  tokenizer->bpe_.reserve(merges_.size());
  size_t offset = 0;
  for (size_t i = 0; i < merges_.size(); ++i) {
    const std::string_view both =
        std::string_view(merge_pool_).substr(offset, merges_[i].left_length + merges_[i].right_length);
    const std::string_view left = both.substr(0, merges_[i].left_length), right = both.substr(left.size());
    offset += both.size();
    const auto left_id = vocabulary_.find(left), right_id = vocabulary_.find(right), merged_id = vocabulary_.find(both);
    if (!left_id || !right_id || !merged_id) {
      const std::string_view missing = !left_id ? left : !right_id ? right : both;
      return error(Code::kInvalidFile,
                   "%s: merge %zu, of %s and %s, needs the token %s, which is not in the vocabulary", merges_file_,
                   i + 1, quote(left).c_str(), quote(right).c_str(), quote(missing).c_str());
    }
    tokenizer->bpe_.add_merge(*left_id, *right_id, static_cast<uint32_t>(i), *merged_id);
  }
  return {};
}

Status TokenizerBuilder::resolve_added_tokens() {
  sort_items<AddedToken>(&added_, [](const AddedToken& a, const AddedToken& b) { return a.id < b.id; });
  for (size_t i = 0; i < added_.size(); ++i) {
    const AddedToken& token = added_[i];
    if (i > 0 && added_[i - 1].id == token.id) {
      return error(Code::kInvalidFile, "%s: the added tokens %s and %s both have the id %d", vocab_file_,
                   quote(added_[i - 1].content).c_str(), quote(token.content).c_str(), token.id);
    }
    const auto known = vocabulary_.find(token.content);
    if (known && *known != token.id) {
      return error(Code::kInvalidFile, "%s: the added token %s has the id %d, but also the id %d", vocab_file_,
                   quote(token.content).c_str(), token.id, *known);
    }
    added_[i].in_model = known.has_value();
    if (!known) vocabulary_.add(token.id, token.content);
  }
  return {};
}

Status TokenizerBuilder::check_surroundings() const {
  for (const auto* ids : {&begin_ids_, &end_ids_}) {
    for (const int32_t id : *ids) {
      if (!vocabulary_.has(id)) return error(Code::kInvalidFile, "%s: the id %d is put around texts, but has no token", vocab_file_, id);
    }
  }
  return {};
}

Status TokenizerBuilder::finish(std::unique_ptr<Tokenizer>* out) {
  if (match_piece_ == nullptr) return error(Code::kMissing, "%s: has no pre-tokenizer", vocab_file_);
  std::unique_ptr<Tokenizer> tokenizer(new Tokenizer);
  QW_TRY(resolve_bytes(tokenizer.get()));
  QW_TRY(resolve_merges(tokenizer.get()));
  QW_TRY(resolve_added_tokens());
  QW_TRY(vocabulary_.seal(vocab_file_));
  QW_TRY(check_surroundings());
  for (const AddedToken& token : added_) {
    std::string buffer;
    const bool in_normalized = token.normalized && nfc_;
    AddedTokenMatcher& matcher = token.normalized ? tokenizer->added_normalized_ : tokenizer->added_raw_;
    matcher.add(token, std::string(in_normalized ? nfc(token.content, &buffer) : token.content));
  }
  tokenizer->added_raw_.seal();
  tokenizer->added_normalized_.seal();
  tokenizer->is_special_.assign(vocabulary_.id_limit(), false);
  for (const AddedToken& token : added_) tokenizer->is_special_[token.id] = token.special;
  tokenizer->vocabulary_ = std::move(vocabulary_);
  tokenizer->added_ = std::move(added_);
  tokenizer->match_piece_ = match_piece_;
  tokenizer->nfc_ = nfc_;
  tokenizer->ignore_merges_ = ignore_merges_;
  tokenizer->begin_ids_ = std::move(begin_ids_);
  tokenizer->end_ids_ = std::move(end_ids_);
  *out = std::move(tokenizer);
  return {};
}

}  // namespace qwasm
