// Bytes as printable characters: see byte_alphabet.h.
#include "core/text/byte_alphabet.h"

#include <array>

#include "core/text/utf8.h"

namespace qwasm {
namespace {

constexpr char32_t kFirstStandIn = 0x100;
constexpr uint32_t kStandIns = 68;

constexpr std::array<uint8_t, kStandIns> kStandInBytes = [] {
  std::array<uint8_t, kStandIns> bytes{};
  uint32_t count = 0;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    if (!is_printable_byte(byte)) bytes[count++] = static_cast<uint8_t>(byte);
  }
  return bytes;
}();

}  // namespace

char32_t byte_to_char(uint8_t byte) {
  if (is_printable_byte(byte)) return byte;
  char32_t code = kFirstStandIn;
  while (kStandInBytes[code - kFirstStandIn] != byte) ++code;
  return code;
}

void append_token_bytes(std::string_view token_text, std::string* out) {
  const size_t before = out->size();
  for (size_t i = 0; i < token_text.size();) {
    const Utf8Char c = read_valid_utf8(token_text.data() + i);
    i += c.length;
    if (c.code < kFirstStandIn && is_printable_byte(c.code)) {
      out->push_back(static_cast<char>(c.code));
    } else if (c.code - kFirstStandIn < kStandIns) {
      out->push_back(static_cast<char>(kStandInBytes[c.code - kFirstStandIn]));
    } else {
      out->resize(before);
      out->append(token_text);
      return;
    }
  }
}

}  // namespace qwasm
