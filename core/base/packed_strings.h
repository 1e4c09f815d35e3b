// Strings that stand one after the other, each behind its length in eight little-endian bytes, as GGUF files have them.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

namespace qwasm {

inline uint64_t read_u64(const char* bytes) {
  uint64_t value;
  std::memcpy(&value, bytes, sizeof value);  // little-endian, as every machine that qwasm runs on
  return value;
}

// A view; whoever makes one has checked that `bytes` holds `count` strings and nothing else.
struct PackedStrings {
  uint64_t count = 0;
  std::string_view bytes;

  // Takes the first one off; count > 0.
  std::string_view next() {
    const auto length = static_cast<size_t>(read_u64(bytes.data()));
    const std::string_view text = bytes.substr(8, length);
    bytes.remove_prefix(8 + length);
    --count;
    return text;
  }
};

}  // namespace qwasm
