// Text from files inside error sentences: in quotation marks, without control characters, not endless.
#pragma once

#include <string>
#include <string_view>

#include "core/text/utf8.h"

namespace qwasm {

inline std::string quote(std::string_view text, size_t limit = 300) {
  std::string out = "\"";
  const std::string_view shown = text.substr(0, limit);
  append_lossy_utf8(shown, &out);
  for (char& c : out) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  }
  return out + (shown.size() < text.size() ? "…\"" : "\"");
}

}  // namespace qwasm
