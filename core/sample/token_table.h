// All tokens' bytes in their order, with what neighbours share: a trie to walk in one pass, without its nodes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace qwasm {

class TokenTable {
 public:
  static constexpr size_t kLongest = 1 << 10;  // longer tokens, which no known vocabulary has, are left out

  struct Token {
    uint32_t offset, length;  // in bytes()
    int32_t id;
    uint16_t shared;     // bytes that it has in common with the token before
    uint16_t free_from;  // from there on it is whole, ordinary characters: all but control characters, " and \ (see GrammarAutomaton::free_run)
  };

  // `bytes`: those of all tokens, one after the other; ends[id]: where they end. No bytes for ids that no grammar may use. 4 MB for Qwen3's.
  TokenTable(std::string bytes, const std::vector<uint32_t>& ends);

  const std::vector<Token>& tokens() const { return tokens_; }
  const uint8_t* bytes() const { return reinterpret_cast<const uint8_t*>(bytes_.data()); }

 private:
  std::string bytes_;
  std::vector<Token> tokens_;
};

}  // namespace qwasm
