// Cuts text into the pieces that BPE works on, as the regular expression of the tokenizer's file would.
#pragma once

#include <string>
#include <string_view>

namespace qwasm {

// Length in bytes of the piece at the beginning of `text`, which is valid UTF-8 and not empty; always > 0.
using PieceMatcher = size_t (*)(std::string_view text);

// The pattern of Qwen2 and Qwen3.
extern const std::string_view kQwen2Pattern;

// The matcher for a pattern, compared letter by letter; nullptr for one that is not known.
PieceMatcher find_piece_matcher(std::string_view pattern);

}  // namespace qwasm
