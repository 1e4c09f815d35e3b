// The search for added tokens: see added_tokens.h.
#include "core/text/added_tokens.h"

#include <algorithm>
#include <utility>

#include "core/base/sort.h"
#include "core/text/unicode.h"
#include "core/text/utf8.h"

namespace qwasm {
namespace {

CharClass class_at(std::string_view text, size_t position) {
  return char_class(read_valid_utf8(text.data() + position).code);
}

bool stands_alone(std::string_view text, size_t begin, size_t end) {
  if (begin > 0 && is_word(class_at(text, previous_utf8(text, begin)))) return false;
  return end == text.size() || !is_word(class_at(text, end));
}

size_t skip_spaces_back(std::string_view text, size_t begin, size_t floor) {
  while (begin > floor) {
    const size_t previous = previous_utf8(text, begin);
    if (class_at(text, previous) != CharClass::kSpace) break;
    begin = previous;
  }
  return begin;
}

size_t skip_spaces(std::string_view text, size_t end) {
  while (end < text.size() && class_at(text, end) == CharClass::kSpace)
    end += read_valid_utf8(text.data() + end).length;
  return end;
}

}  // namespace

void AddedTokenMatcher::add(const AddedToken& token, std::string content) {
  if (content.empty()) return;
  patterns_.push_back({std::move(content), token.id, token.single_word, token.lstrip, token.rstrip});
}

void AddedTokenMatcher::seal() {
  // string_view compares bytes as unsigned, which longest_at relies on.
  sort_items<Pattern>(&patterns_, [](const Pattern& a, const Pattern& b) {
    const int order = std::string_view(a.content).compare(b.content);
    return order != 0 ? order < 0 : a.id < b.id;
  });
  for (uint32_t i = 0; i < patterns_.size(); ++i) {
    Range& range = by_first_byte_[static_cast<unsigned char>(patterns_[i].content[0])];
    if (range.end == 0) range.begin = i;
    range.end = i + 1;
  }
}

const AddedTokenMatcher::Pattern* AddedTokenMatcher::longest_at(std::string_view text) const {
  Range range = by_first_byte_[static_cast<unsigned char>(text[0])];
  const Pattern* longest = nullptr;
  // Narrows the range of patterns that begin with text[0 … depth); one of exactly that length stands first in it.
  for (size_t depth = 1; range.begin < range.end; ++depth) {
    if (patterns_[range.begin].content.size() == depth) longest = &patterns_[range.begin];
    if (depth == text.size()) break;
    const int wanted = static_cast<unsigned char>(text[depth]);
    const auto byte_at = [&](const Pattern& p) {
      return p.content.size() == depth ? -1 : static_cast<int>(static_cast<unsigned char>(p.content[depth]));
    };
    const auto begin = patterns_.begin() + range.begin, end = patterns_.begin() + range.end;
    const auto low = std::partition_point(begin, end, [&](const Pattern& p) { return byte_at(p) < wanted; });
    const auto high = std::partition_point(low, end, [&](const Pattern& p) { return byte_at(p) == wanted; });
    range = {static_cast<uint32_t>(low - patterns_.begin()), static_cast<uint32_t>(high - patterns_.begin())};
  }
  return longest;
}

std::vector<AddedTokenMatcher::Segment> AddedTokenMatcher::split(std::string_view text, std::string_view mark) const {
  std::vector<Segment> segments;
  size_t plain = 0;  // where text begins that belongs to no segment yet
  for (size_t i = 0; i < text.size();) {
    const Pattern* pattern = longest_at(text.substr(i));
    if (pattern == nullptr) {
      ++i;
      continue;
    }
    size_t begin = i, end = i + pattern->content.size();
    i = end;
    // A longer token cannot match across a mark; one of a single character is followed by it.
    const bool one_character = read_valid_utf8(text.data() + begin).length == pattern->content.size();
    if (one_character && !mark.empty() && text.substr(end).starts_with(mark)) continue;
    if (pattern->single_word && !stands_alone(text, begin, end)) continue;
    if (pattern->lstrip) begin = std::max(skip_spaces_back(text, begin, plain), plain);
    if (pattern->rstrip) end = skip_spaces(text, end);
    if (begin >= end) continue;  // white space that the token before has swallowed
    if (plain < begin) segments.push_back({kPlain, text.substr(plain, begin - plain)});
    segments.push_back({pattern->id, {}});
    // White space that rstrip took may still be a token of its own, as in Hugging Face.
    plain = std::max(plain, end);
  }
  if (plain < text.size()) segments.push_back({kPlain, text.substr(plain)});
  return segments;
}

}  // namespace qwasm
