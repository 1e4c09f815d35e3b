// Cuts text into the pieces that BPE works on, as the regular expression of the tokenizer's file would.
#pragma once

#include <string>
#include <string_view>

namespace qwasm {

// Length in bytes of the piece at the beginning of `text`, which is valid UTF-8 and not empty; always > 0.
using PieceMatcher = size_t (*)(std::string_view text);

// The pattern of Qwen2 and Qwen3, and that of GPT-2, which ByteLevel means by use_regex.
extern const std::string_view kQwen2Pattern, kGpt2Pattern;

// The matcher for a pattern, compared letter by letter; nullptr for one that is not known.
PieceMatcher find_piece_matcher(std::string_view pattern);

// GPT-2's pattern on what stands between digits, which are pieces of their own (SmolLM).
size_t match_smollm(std::string_view text);

// What a GGUF file's tokenizer.ggml.pre stands for, as llama.cpp has it; normalization as in the tokenizer.json of those families.
struct PreTokenizer {
  std::string_view name;
  PieceMatcher match;
  bool nfc = false, ignore_merges = false;
  bool add_bos = false;  // where the file has no tokenizer.ggml.add_bos_token
};

// nullptr for a name that is not known. A file without the key means "default".
const PreTokenizer* pre_tokenizer_of(std::string_view name);

// The name for what a tokenizer does; empty where there is none.
std::string_view pre_tokenizer_name(PieceMatcher match, bool nfc, bool ignore_merges);

}  // namespace qwasm
