// The alphabet of byte-level BPE: every byte is written as one printable character.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace qwasm {

// Printable bytes stand for themselves, the other 68 for U+0100 and the following, in order.
constexpr bool is_printable_byte(uint32_t byte) {
  return (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || (byte >= 0xae && byte <= 0xff);
}

// The character that stands for a byte.
char32_t byte_to_char(uint8_t byte);

// Appends the bytes that a token's text stands for; the text itself where one of its characters is not of the alphabet.
void append_token_bytes(std::string_view token_text, std::string* out);

}  // namespace qwasm
