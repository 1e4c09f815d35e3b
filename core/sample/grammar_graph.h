// A grammar as a graph whose edges are bytes: what GBNF text (llama.cpp's notation) becomes.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/base/status.h"

namespace qwasm {

// Each rule is a part of the graph of its own: from its start, along edges that take a byte, nothing, or a whole rule, to its end. From every
// state that can be reached the end can be reached, so whatever was written so far can be finished.
class GrammarGraph {
 public:
  enum Kind : uint32_t {
    kByte,   // one byte, low … high
    kEmpty,  // nothing
    kCall,   // what `rule` derives
    kEnd     // the rule ends here; `to` means nothing
  };

  // In one word, whose order is that of the states it comes from.
  class Edge {
   public:
    explicit Edge(uint64_t word) : word_(word) {}
    static uint64_t word(Kind kind, uint32_t from, uint32_t to, uint32_t label) {
      return static_cast<uint64_t>(from) << 44 | static_cast<uint64_t>(to) << 20 | label << 2 | kind;
    }
    Kind kind() const { return static_cast<Kind>(word_ & 3); }
    uint32_t from() const { return static_cast<uint32_t>(word_ >> 44); }
    uint32_t to() const { return word_ >> 20 & 0xfffff; }
    uint32_t rule() const { return word_ >> 2 & 0xffff; }
    uint32_t low() const { return word_ >> 10 & 0xff; }
    uint32_t high() const { return word_ >> 2 & 0xff; }

   private:
    uint64_t word_;
  };

  Edge edge(uint32_t index) const { return Edge(edges[index]); }

  std::vector<uint64_t> edges;       // by the state they come from
  std::vector<uint32_t> first_edge;  // by state, and one more
  std::vector<uint32_t> rule_start;  // by rule; the first is root
};

// GBNF: rules `name ::= …`, "literals", [character classes], . | * + ? {m} {m,} {m,n} ( ) and # comments; line breaks count as spaces. Refused by
// name: rules that are undefined, defined twice, out of root's reach, left-recursive, or never to end.
Status parse_grammar(std::string_view text, GrammarGraph* graph);

// Reads the character at the beginning of `bytes`, strictly by the rules of UTF-8; returns its length, or 0 where there is none or it is cut off.
uint32_t read_character(std::string_view bytes, uint32_t* code);

}  // namespace qwasm
