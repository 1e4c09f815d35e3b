// Finds added tokens in text as Hugging Face does: leftmost, then longest, never overlapping.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace qwasm {

// A token that is found in text as it stands, before BPE; the fields are tokenizer.json's.
struct AddedToken {
  int32_t id = 0;
  std::string content;
  bool special = false;      // left out when decoding with skip_special
  bool single_word = false;  // only matches where neither neighbour is a word character
  bool lstrip = false;       // swallows the white space before it
  bool rstrip = false;       // swallows the white space after it
  bool normalized = false;   // looked for in normalized text
  bool in_model = false;     // the model's vocabulary has it too
};

class AddedTokenMatcher {
 public:
  static constexpr int32_t kPlain = -1;
  struct Segment {
    int32_t id;             // kPlain: text between added tokens
    std::string_view text;  // of plain segments; never empty
  };

  // `content`: what is looked for, usually token.content; empty is never found.
  void add(const AddedToken& token, std::string content);
  void seal();  // after the last add
  bool empty() const { return patterns_.empty(); }

  // Cuts `text` (valid UTF-8). `mark`: UTF-8 of the inert mark or empty; a token after whose first character it stands
  // is plain.
  std::vector<Segment> split(std::string_view text, std::string_view mark) const;

 private:
  struct Pattern {
    std::string content;
    int32_t id;
    bool single_word, lstrip, rstrip;
  };
  struct Range {
    uint32_t begin = 0, end = 0;
  };

  const Pattern* longest_at(std::string_view text) const;

  std::vector<Pattern> patterns_;         // sorted by content
  std::array<Range, 256> by_first_byte_;  // in patterns_
};

}  // namespace qwasm
