// Hand-written matchers for the known pre-tokenizer patterns.
#include "core/text/pretokenizer.h"

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

// (?i:'s|'t|'re|'ve|'m|'ll|'d)
size_t match_contraction(std::string_view text) {
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

size_t match_qwen2(std::string_view text) {
  if (const size_t length = match_contraction(text)) return length;
  const Cursor start(text);
  if (const size_t length = match_word(start)) return length;
  if (start.is_number()) {
    Cursor cursor = start;
    cursor.next();
    return cursor.position();
  }
  if (const size_t length = match_symbols(start)) return length;
  return match_space(start);
}

struct KnownPattern {
  std::string_view pattern;
  PieceMatcher match;
};

constexpr KnownPattern kPatterns[] = {
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|)"
     R"(\s*[\r\n]+|\s+(?!\S)|\s+)",
     match_qwen2},
};

}  // namespace

const std::string_view kQwen2Pattern = kPatterns[0].pattern;

PieceMatcher find_piece_matcher(std::string_view pattern) {
  for (const KnownPattern& known : kPatterns) {
    if (known.pattern == pattern) return known.match;
  }
  return nullptr;
}

}  // namespace qwasm
