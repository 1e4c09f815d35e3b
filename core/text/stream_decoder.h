// Token ids to text, one at a time: whole characters only, and in sum exactly what Tokenizer::decode gives.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/text/tokenizer.h"

namespace qwasm {

class StreamDecoder {
 public:
  // The tokenizer must outlive the decoder.
  StreamDecoder(const Tokenizer& tokenizer, bool skip_special);

  // The text that this token completes, valid until the next call. Holds back a character of which bytes are still to
  // come.
  std::string_view push(int32_t id);
  // A character cut off at the end, as U+FFFD; empty otherwise and when called again.
  std::string_view flush();
  void reset();

 private:
  const Tokenizer& tokenizer_;
  bool skip_special_;
  std::string held_;   // the beginning of a character
  std::string piece_;  // what the last call returned
};

}  // namespace qwasm
