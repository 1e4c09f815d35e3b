// UTF-8 by hand: see utf8.h.
#include "core/text/utf8.h"

namespace qwasm {

Utf8Char read_utf8(std::string_view bytes) {
  const auto at = [&](size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const unsigned char lead = at(0);
  if (lead < 0x80) return {lead, 1, true, false};
  if (lead < 0xc2 || lead > 0xf4) return {};
  const uint32_t length = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  char32_t code = lead & (0xffu >> (length + 1));
  for (uint32_t i = 1; i < length; ++i) {
    if (i == bytes.size()) return {0, i, false, true};
    // The second byte's bounds keep out overlong forms, surrogates and what lies beyond U+10FFFF.
    const unsigned low = i > 1 ? 0x80 : lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
    const unsigned high = i > 1 ? 0xbf : lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
    if (at(i) < low || at(i) > high) return {0, i, false, false};
    code = code << 6 | (at(i) & 0x3f);
  }
  return {code, length, true, false};
}

size_t find_invalid_utf8(std::string_view bytes) {
  for (size_t i = 0; i < bytes.size();) {
    if (static_cast<unsigned char>(bytes[i]) < 0x80) {
      ++i;
      continue;
    }
    const Utf8Char c = read_utf8(bytes.substr(i, 4));
    if (!c.valid) return i;
    i += c.length;
  }
  return std::string_view::npos;
}

void append_utf8(char32_t code, std::string* out) {
  const auto byte = [&](uint32_t value) { out->push_back(static_cast<char>(value)); };
  if (code < 0x80) {
    byte(code);
  } else if (code < 0x800) {
    byte(0xc0 | code >> 6);
    byte(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    byte(0xe0 | code >> 12);
    byte(0x80 | (code >> 6 & 0x3f));
    byte(0x80 | (code & 0x3f));
  } else {
    byte(0xf0 | code >> 18);
    byte(0x80 | (code >> 12 & 0x3f));
    byte(0x80 | (code >> 6 & 0x3f));
    byte(0x80 | (code & 0x3f));
  }
}

size_t append_lossy_utf8(std::string_view bytes, std::string* out) {
  size_t i = 0;
  while (i < bytes.size()) {
    const Utf8Char c = read_utf8(bytes.substr(i, 4));
    if (c.truncated) break;
    if (c.valid) {
      out->append(bytes, i, c.length);
    } else {
      out->append("\xef\xbf\xbd");
    }
    i += c.length;
  }
  return i;
}

}  // namespace qwasm
