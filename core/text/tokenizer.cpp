// Encoding and decoding: see tokenizer.h. The readers of the files are in tokenizer_json.cpp and vocab_merges.cpp.
#include "core/text/tokenizer.h"

#include <algorithm>

#include "core/text/byte_alphabet.h"
#include "core/text/unicode.h"
#include "core/text/utf8.h"

namespace qwasm {
namespace {

constexpr size_t kMaxTextBytes = 1 << 29;

// `text` without marks: itself where it holds none, else a view of `*buffer`.
std::string_view without_marks(std::string_view text, std::string_view mark, std::string* buffer) {
  if (mark.empty() || text.find(mark) == std::string_view::npos) return text;
  buffer->clear();
  size_t from = 0;
  for (size_t at; (at = text.find(mark, from)) != std::string_view::npos; from = at + mark.size()) {
    buffer->append(text, from, at - from);
  }
  buffer->append(text, from);
  return *buffer;
}

}  // namespace

// The token of the model's vocabulary that stands for all of `piece`. Special tokens are not among them: plain text never gives one.
std::optional<int32_t> Tokenizer::whole_token(std::string_view piece) const {
  std::string text;
  for (const char byte : piece) append_utf8(byte_to_char(static_cast<uint8_t>(byte)), &text);
  const auto id = vocabulary_.find(text);
  if (!id) return id;
  const auto added = std::lower_bound(added_.begin(), added_.end(), *id, [](const AddedToken& token, int32_t other) { return token.id < other; });
  return added == added_.end() || added->id != *id || (added->in_model && !added->special) ? id : std::nullopt;
}

void Tokenizer::encode_plain(std::string_view text, std::string_view mark, std::vector<int32_t>* ids) const {
  std::string unmarked, normalized;
  std::string_view rest = without_marks(text, mark, &unmarked);
  if (nfc_) rest = nfc(rest, &normalized);
  while (!rest.empty()) {
    const size_t length = match_piece_(rest);
    const std::string_view piece = rest.substr(0, length);
    if (const auto token = ignore_merges_ ? whole_token(piece) : std::nullopt) {
      ids->push_back(*token);
    } else {
      bpe_.encode(piece, ids);
    }
    rest.remove_prefix(length);
  }
}

Status Tokenizer::encode(std::string_view text, bool honour_added, char32_t inert_mark,
                         std::vector<int32_t>* ids) const {
  ids->clear();
  // Tokens are counted in 31 bits, and NFC makes at most three bytes, so three tokens, of one.
  if (text.size() > kMaxTextBytes) {
    return error(Code::kInvalidArgument, "text: has %zu bytes; at most %zu can be encoded at once", text.size(),
                 kMaxTextBytes);
  }
  if (const size_t offset = find_invalid_utf8(text); offset != std::string_view::npos) {
    return error(Code::kInvalidArgument, "text: not UTF-8 at byte %zu", offset);
  }
  if (inert_mark > 0x10ffff || (inert_mark >= 0xd800 && inert_mark <= 0xdfff)) {
    return error(Code::kInvalidArgument, "inert mark: 0x%x is not a character", static_cast<unsigned>(inert_mark));
  }
  std::string mark;
  if (inert_mark != 0) append_utf8(inert_mark, &mark);
  if (!honour_added) {
    encode_plain(text, mark, ids);
    return {};
  }
  std::string normalized;
  for (const auto& outer : added_raw_.split(text, mark)) {
    if (outer.id != AddedTokenMatcher::kPlain) {
      ids->push_back(outer.id);
      continue;
    }
    if (added_normalized_.empty()) {
      encode_plain(outer.text, mark, ids);
      continue;
    }
    // Marks neither compose nor decompose, so they may stay through this normalization; plain text is normalized again.
    const std::string_view searched = nfc_ ? nfc(outer.text, &normalized) : outer.text;
    for (const auto& inner : added_normalized_.split(searched, mark)) {
      if (inner.id != AddedTokenMatcher::kPlain) {
        ids->push_back(inner.id);
      } else {
        encode_plain(inner.text, mark, ids);
      }
    }
  }
  return {};
}

size_t Tokenizer::settled_bytes(std::string_view text) const {
  size_t settled = 0, before = 0;
  for (size_t at = 0; at < text.size(); at += match_piece_(text.substr(at))) {
    before = settled;
    settled = at;
  }
  // GPT-2's pattern cuts "'r" in two, but not "'re".
  return text.substr(before).size() == 2 && text[before] == '\'' ? before : settled;
}

void Tokenizer::append_bytes(int32_t id, bool skip_special, std::string* out) const {
  if (!vocabulary_.has(id) || (skip_special && is_special_[id])) return;
  append_token_bytes(vocabulary_.text(id), out);
}

std::string Tokenizer::decode(std::span<const int32_t> ids, bool skip_special) const {
  std::string bytes, text;
  for (const int32_t id : ids) append_bytes(id, skip_special, &bytes);
  const size_t used = append_lossy_utf8(bytes, &text);
  if (used < bytes.size()) text += "\xef\xbf\xbd";
  return text;
}

}  // namespace qwasm
