// What the tokenizer must know of Unicode: classes of characters and NFC. The tables say which versions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace qwasm {

// The numbers are those of unicode_tables.inc. Letter is \p{L}, both numbers are \p{N}, space is \s (property
// White_Space), both punctuations are \p{P}; \w (Alphabetic, marks, decimal digits, connectors, joiners) is letter and
// what has word in its name.
enum class CharClass : uint8_t {
  kOther = 0,
  kLetter = 1,
  kWordNumber = 2,
  kNumber = 3,
  kSpace = 4,
  kWord = 5,
  kPunctuation = 6,
  kWordPunctuation = 7
};

CharClass char_class(char32_t code);

inline bool is_number(CharClass c) { return c == CharClass::kWordNumber || c == CharClass::kNumber; }
inline bool is_punctuation(CharClass c) { return c == CharClass::kPunctuation || c == CharClass::kWordPunctuation; }
inline bool is_word(CharClass c) {
  return c == CharClass::kLetter || c == CharClass::kWordNumber || c == CharClass::kWord || c == CharClass::kWordPunctuation;
}

// Normalization form C of valid UTF-8. Returns `text` itself where that is already normalized, else a view of
// `*buffer`.
std::string_view nfc(std::string_view text, std::string* buffer);

}  // namespace qwasm
