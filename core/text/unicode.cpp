// Character classes and normalization form C: see unicode.h.
#include "core/text/unicode.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include "core/text/utf8.h"

namespace qwasm {
namespace {

#include "core/text/unicode_tables.inc"

// Hangul syllables are computed: (first · 21 + vowel) · 28 + final.
constexpr char32_t kHangul = 0xac00, kHangulFirst = 0x1100, kHangulVowel = 0x1161, kHangulFinal = 0x11a7;
constexpr uint32_t kFirsts = 19, kVowels = 21, kFinals = 28;

constexpr char32_t kSmallestMark = 0x300;  // everything below is a starter and its own NFC
constexpr uint32_t kMayNotBeNfc = 1 << 6;
constexpr uint32_t kRankMask = kMayNotBeNfc - 1;

// The value that holds for `code` in a table of (first code point << bits | value).
template <size_t size>
uint32_t value_in(const uint32_t (&table)[size], int bits, char32_t code) {
  const uint32_t key = (code + 1) << bits;
  return *(std::lower_bound(std::begin(table), std::end(table), key) - 1) & ((1u << bits) - 1);
}

struct Mark {
  char32_t code;
  uint32_t rank;  // order of its canonical combining class; 0 = starter
};

struct Decomposition {
  char32_t character, first, second;
};

Decomposition unpack(uint64_t entry) {
  return {char32_t(entry >> 43), char32_t(entry >> 22 & 0x1fffff), char32_t(entry >> 1 & 0x1fffff)};
}

void decompose(char32_t code, std::vector<Mark>* out) {
  if (code < 0xc0) return out->push_back({code, 0});
  if (code - kHangul < kFirsts * kVowels * kFinals) {
    const uint32_t index = code - kHangul;
    out->push_back({kHangulFirst + index / (kVowels * kFinals), 0});
    out->push_back({kHangulVowel + index / kFinals % kVowels, 0});
    if (index % kFinals != 0) out->push_back({kHangulFinal + index % kFinals, 0});
    return;
  }
  const auto* found = std::lower_bound(std::begin(kDecompositions), std::end(kDecompositions), uint64_t(code) << 43);
  if (found == std::end(kDecompositions) || unpack(*found).character != code) {
    return out->push_back({code, value_in(kMarks, 7, code) & kRankMask});
  }
  const Decomposition parts = unpack(*found);
  decompose(parts.first, out);  // at most four deep
  if (parts.second != 0) decompose(parts.second, out);
}

// The character that the pair composes to, or 0.
char32_t compose(char32_t first, char32_t second) {
  if (first - kHangulFirst < kFirsts && second - kHangulVowel < kVowels) {
    return kHangul + ((first - kHangulFirst) * kVowels + (second - kHangulVowel)) * kFinals;
  }
  const uint32_t syllable = first - kHangul;
  if (syllable < kFirsts * kVowels * kFinals && syllable % kFinals == 0 && second - kHangulFinal - 1 < kFinals - 1) {
    return first + (second - kHangulFinal);
  }
  const auto less = [](uint16_t index, const Decomposition& pair) {
    const Decomposition d = unpack(kDecompositions[index]);
    return d.first != pair.first ? d.first < pair.first : d.second < pair.second;
  };
  const auto* found =
      std::lower_bound(std::begin(kCompositions), std::end(kCompositions), Decomposition{0, first, second}, less);
  if (found == std::end(kCompositions)) return 0;
  const Decomposition d = unpack(kDecompositions[*found]);
  return d.first == first && d.second == second ? d.character : 0;
}

// Sorts each run of marks by class, keeping the order of equals.
void order_marks(std::vector<Mark>* marks) {
  const auto is_starter = [](const Mark& m) { return m.rank == 0; };
  for (auto run = marks->begin(); run != marks->end();) {
    run = std::find_if_not(run, marks->end(), is_starter);
    const auto end = std::find_if(run, marks->end(), is_starter);
    std::stable_sort(run, end, [](const Mark& a, const Mark& b) { return a.rank < b.rank; });
    run = end;
  }
}

// Composes in place, as the standard describes: a character joins the last starter unless something between blocks it.
void compose_marks(std::vector<Mark>* marks) {
  size_t size = 0, starter = SIZE_MAX;
  for (const Mark mark : *marks) {
    // What stands between the starter and here has ascending classes, so only the last one can block.
    const bool adjacent = starter != SIZE_MAX && size == starter + 1;
    const bool reachable = starter != SIZE_MAX && (adjacent || (*marks)[size - 1].rank < mark.rank);
    const char32_t composed = reachable ? compose((*marks)[starter].code, mark.code) : 0;
    if (composed != 0) {
      (*marks)[starter].code = composed;
      continue;
    }
    if (mark.rank == 0) starter = size;
    (*marks)[size++] = mark;
  }
  marks->resize(size);
}

bool may_not_be_nfc(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    if (static_cast<unsigned char>(text[i]) < 0xcc) {  // below U+0300
      i += static_cast<unsigned char>(text[i]) < 0x80 ? 1 : 2;
      continue;
    }
    const Utf8Char c = read_valid_utf8(text.data() + i);
    if (c.code >= kSmallestMark && (value_in(kMarks, 7, c.code) & kMayNotBeNfc)) return true;
    i += c.length;
  }
  return false;
}

}  // namespace

CharClass char_class(char32_t code) { return static_cast<CharClass>(value_in(kClasses, 3, code)); }

std::string_view nfc(std::string_view text, std::string* buffer) {
  if (!may_not_be_nfc(text)) return text;
  std::vector<Mark> marks;
  marks.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    const Utf8Char c = read_valid_utf8(text.data() + i);
    decompose(c.code, &marks);
    i += c.length;
  }
  order_marks(&marks);
  compose_marks(&marks);
  buffer->clear();
  for (const Mark& mark : marks) append_utf8(mark.code, buffer);
  return *buffer;
}

}  // namespace qwasm
