// Hand-written matchers for the known pre-tokenizer patterns.
#include "core/text/pretokenizer.h"

#include <algorithm>

#include "core/text/unicode.h"
#include "core/text/utf8.h"

namespace qwasm {
namespace {

// Walks over valid UTF-8 and knows each character's class.
class Cursor {
 public:
  explicit Cursor(std::string_view text) : text_(text) { read(); }

  size_t position() const { return position_; }
  bool at_end() const { return position_ == text_.size(); }
  char32_t code() const { return code_; }
  bool is_letter() const { return !at_end() && class_ == CharClass::kLetter; }
  bool is_number() const { return !at_end() && qwasm::is_number(class_); }
  bool is_space() const { return !at_end() && class_ == CharClass::kSpace; }
  bool is_line_end() const { return !at_end() && (code_ == '\r' || code_ == '\n'); }
  bool is_other() const { return !at_end() && !is_letter() && !is_number() && !is_space(); }
  // [\p{P}$+<=>^~|]
  bool is_symbol() const {
    return !at_end() && (is_punctuation(class_) || (code_ < 0x80 && std::string_view("$+<=>^~|").find(char(code_)) != std::string_view::npos));
  }

  void next() {
    position_ += length_;
    read();
  }

 private:
  void read() {
    if (at_end()) return;
    const Utf8Char c = read_valid_utf8(text_.data() + position_);
    code_ = c.code;
    length_ = c.length;
    class_ = char_class(c.code);
  }

  std::string_view text_;
  size_t position_ = 0;
  char32_t code_ = 0;
  uint32_t length_ = 0;
  CharClass class_ = CharClass::kOther;
};

// ASCII lower case, for comparing with the letters of English contractions. The one other character that folds to any
// of them is U+017F, the long s.
char32_t fold(char32_t code) {
  if (code == 0x17f) return 's';
  return code >= 'A' && code <= 'Z' ? code + ('a' - 'A') : code;
}

char32_t as_it_is(char32_t code) { return code; }

// 's|'t|'re|'ve|'m|'ll|'d, of letters as `fold` gives them.
size_t match_contraction(std::string_view text, char32_t (*fold)(char32_t)) {
  if (text[0] != '\'') return 0;
  Cursor cursor(text);
  cursor.next();
  if (cursor.at_end()) return 0;
  const char32_t first = fold(cursor.code());
  cursor.next();
  if (first == 's' || first == 't' || first == 'm' || first == 'd') return cursor.position();
  if (cursor.at_end()) return 0;
  const char32_t second = fold(cursor.code());
  const bool found =
      (first == 'r' && second == 'e') || (first == 'v' && second == 'e') || (first == 'l' && second == 'l');
  if (!found) return 0;
  cursor.next();
  return cursor.position();
}

// [^\r\n\p{L}\p{N}]?\p{L}+
size_t match_word(Cursor cursor) {
  if (!cursor.is_letter()) {
    if (cursor.is_line_end() || cursor.is_number()) return 0;
    cursor.next();
    if (!cursor.is_letter()) return 0;
  }
  while (cursor.is_letter()) cursor.next();
  return cursor.position();
}

//  ?[^\s\p{L}\p{N}]+[\r\n]*
size_t match_symbols(Cursor cursor) {
  if (cursor.code() == ' ') cursor.next();
  if (!cursor.is_other()) return 0;
  while (cursor.is_other()) cursor.next();
  while (cursor.is_line_end()) cursor.next();
  return cursor.position();
}

// \s*[\r\n]+|\s+(?!\S)|\s+ on text that begins with white space.
size_t match_space(Cursor cursor) {
  size_t after_line_end = 0;  // behind the run's last \r or \n
  size_t last = 0;            // where the run's last character begins
  while (cursor.is_space()) {
    last = cursor.position();
    const bool line_end = cursor.is_line_end();
    cursor.next();
    if (line_end) after_line_end = cursor.position();
  }
  if (after_line_end != 0) return after_line_end;
  // The last space before a word is left to the next piece, unless it is the only one.
  return cursor.at_end() || last == 0 ? cursor.position() : last;
}

// The pattern of Qwen2 (most_digits 1) and Llama 3 (3).
size_t match_words(std::string_view text, int most_digits) {
  if (const size_t length = match_contraction(text, fold)) return length;
  const Cursor start(text);
  if (const size_t length = match_word(start)) return length;
  if (start.is_number()) {
    Cursor cursor = start;
    for (int digits = 0; digits < most_digits && cursor.is_number(); ++digits) cursor.next();
    return cursor.position();
  }
  if (const size_t length = match_symbols(start)) return length;
  return match_space(start);
}

size_t match_qwen2(std::string_view text) { return match_words(text, 1); }
size_t match_llama3(std::string_view text) { return match_words(text, 3); }

//  ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+ on a text that ends where `ends` says, but not at its beginning.
size_t match_run(const Cursor& start, bool (*ends)(const Cursor&)) {
  Cursor cursor = start;
  if (cursor.code() == ' ') cursor.next();
  if (!cursor.is_space() && !(cursor.position() > 0 && ends(cursor))) {
    const auto belongs = cursor.is_letter() ? &Cursor::is_letter : cursor.is_number() ? &Cursor::is_number : &Cursor::is_other;
    do cursor.next();
    while ((cursor.*belongs)() && !ends(cursor));
    return cursor.position();
  }
  size_t last = 0;  // where the run's last character begins
  for (cursor = start; cursor.is_space(); cursor.next()) last = cursor.position();
  return ends(cursor) || last == 0 ? cursor.position() : last;
}

size_t match_gpt2(std::string_view text) {
  if (const size_t length = match_contraction(text, as_it_is)) return length;
  return match_run(Cursor(text), [](const Cursor& cursor) { return cursor.at_end(); });
}

bool begins_with_three_digits(std::string_view text) {
  return text.size() >= 3 && std::all_of(text.begin(), text.begin() + 3, [](char c) { return c >= '0' && c <= '9'; });
}

// A run of numbers, from which [0-9][0-9][0-9] are cut.
size_t match_number_run(std::string_view text) {
  if (begins_with_three_digits(text)) return 3;
  Cursor cursor(text);
  do cursor.next();
  while (cursor.is_number() && !begins_with_three_digits(text.substr(cursor.position())));
  return cursor.position();
}

// What llama.cpp does where a file names no pattern: text is cut at runs of [\p{P}$+<=>^~|], the rest by GPT-2's pattern, its pieces at
// \p{N}+, and those at [0-9][0-9][0-9]. So a contraction's apostrophe stands alone, and so does the space before a number.
size_t match_default(std::string_view text) {
  Cursor cursor(text);
  if (cursor.is_symbol()) {
    while (cursor.is_symbol()) cursor.next();
    return cursor.position();
  }
  if (cursor.is_number()) return match_number_run(text);
  const Cursor start = cursor;
  cursor.next();
  if (start.code() == ' ' && cursor.is_number()) return cursor.position();
  return match_run(start, [](const Cursor& at) { return at.at_end() || at.is_symbol(); });
}

struct KnownPattern {
  std::string_view pattern;
  PieceMatcher match;
};

constexpr KnownPattern kPatterns[] = {
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|)"
     R"(\s*[\r\n]+|\s+(?!\S)|\s+)",
     match_qwen2},
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|)"
     R"(\s*[\r\n]+|\s+(?!\S)|\s+)",
     match_llama3},
    {R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)", match_gpt2},
};

constexpr PreTokenizer kPreTokenizers[] = {
    {.name = "qwen2", .match = match_qwen2, .nfc = true},
    {.name = "llama-bpe", .match = match_llama3, .ignore_merges = true, .add_bos = true},
    {.name = "llama3", .match = match_llama3, .ignore_merges = true, .add_bos = true},
    {.name = "llama-v3", .match = match_llama3, .ignore_merges = true, .add_bos = true},
    {.name = "smollm", .match = match_smollm},
    {.name = "gpt-2", .match = match_gpt2},
    {.name = "default", .match = match_default},
};

}  // namespace

const std::string_view kQwen2Pattern = kPatterns[0].pattern, kGpt2Pattern = kPatterns[2].pattern;

PieceMatcher find_piece_matcher(std::string_view pattern) {
  for (const KnownPattern& known : kPatterns) {
    if (known.pattern == pattern) return known.match;
  }
  return nullptr;
}

size_t match_smollm(std::string_view text) {
  if (const size_t length = match_contraction(text, as_it_is)) return length;
  Cursor cursor(text);
  if (!cursor.is_number()) return match_run(cursor, [](const Cursor& at) { return at.at_end() || at.is_number(); });
  cursor.next();
  return cursor.position();
}

const PreTokenizer* pre_tokenizer_of(std::string_view name) {
  const auto* known = std::find_if(std::begin(kPreTokenizers), std::end(kPreTokenizers), [&](const PreTokenizer& p) { return p.name == name; });
  return known == std::end(kPreTokenizers) ? nullptr : known;
}

std::string_view pre_tokenizer_name(PieceMatcher match, bool nfc, bool ignore_merges) {
  for (const PreTokenizer& known : kPreTokenizers) {
    if (known.match == match && known.nfc == nfc && known.ignore_merges == ignore_merges) return known.name;
  }
  return {};
}

}  // namespace qwasm
