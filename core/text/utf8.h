// UTF-8 by hand: one character at a time, with what is wrong reported as the WHATWG decoder sees it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace qwasm {

struct Utf8Char {
  char32_t code = 0;
  uint32_t length = 1;  // bytes; of a wrong character, its maximal subpart (what one U+FFFD stands for)
  bool valid = false;
  bool truncated = false;  // not valid, but more bytes could make it so
};

// The character at the beginning of `bytes`, which are not empty.
Utf8Char read_utf8(std::string_view bytes);

// The same for bytes known to be UTF-8.
inline Utf8Char read_valid_utf8(const char* at) {
  const auto* p = reinterpret_cast<const unsigned char*>(at);
  if (p[0] < 0x80) return {p[0], 1, true, false};
  if (p[0] < 0xe0) return {char32_t((p[0] & 0x1f) << 6 | (p[1] & 0x3f)), 2, true, false};
  if (p[0] < 0xf0) return {char32_t((p[0] & 0x0f) << 12 | (p[1] & 0x3f) << 6 | (p[2] & 0x3f)), 3, true, false};
  return {char32_t((p[0] & 0x07) << 18 | (p[1] & 0x3f) << 12 | (p[2] & 0x3f) << 6 | (p[3] & 0x3f)), 4, true, false};
}

// Where the character before `end` begins, in bytes known to be UTF-8; `end` > 0.
inline size_t previous_utf8(std::string_view text, size_t end) {
  do {
    --end;
  } while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80);
  return end;
}

// Offset of the first byte that is not UTF-8, or npos.
size_t find_invalid_utf8(std::string_view bytes);

void append_utf8(char32_t code, std::string* out);

// Appends `bytes` with one U+FFFD for each maximal subpart that is not UTF-8. A character cut off at the end is left
// out; returns how many bytes were used up.
size_t append_lossy_utf8(std::string_view bytes, std::string* out);

}  // namespace qwasm
