// What a GGUF file says of its tokenizer (tokenizer.ggml.*): views into its header.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "core/base/packed_strings.h"

namespace qwasm {

struct GgufVocabulary {
  std::string_view model;    // "gpt2" is byte-level BPE
  std::string_view pre;      // name of the pre-tokenizer
  PackedStrings tokens;      // by id, in the byte alphabet
  PackedStrings merges;      // "left right", in order of rank
  std::string_view types;    // an int32 for each token; empty: all are ordinary
  int64_t bos_token_id = -1, eos_token_id = -1;
  std::optional<bool> add_bos_token;  // whether a whole text begins with it; none: as the pre-tokenizer's family does
  bool add_eos_token = false;
};

}  // namespace qwasm
