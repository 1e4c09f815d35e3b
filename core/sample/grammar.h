// Grammars in generation: which tokens may come next, and which text must.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/sample/grammar_automaton.h"
#include "core/sample/token_table.h"

namespace qwasm {

// A grammar over a vocabulary. Sequences that follow the same grammar share one, and with it the masks that were made.
class Grammar {
 public:
  // `text` is GBNF. `mask_bits`: ids that a mask is about; `end_ids`: tokens that are allowed exactly where the grammar may end.
  // `tokens` and `end_ids` outlive the grammar.
  static Status make(std::string_view text, const TokenTable& tokens, const std::vector<int64_t>& end_ids, int64_t mask_bits,
                     std::unique_ptr<Grammar>* grammar);

 private:
  friend class GrammarMatcher;
  using State = GrammarAutomaton::State;

  Grammar(GrammarGraph graph, const TokenTable& tokens, const std::vector<int64_t>& end_ids, int64_t mask_bits);

  // Bit id % 32 of word id / 32 says whether that token may follow; null where none may. Valid until the next call.
  const uint32_t* mask(State state);
  void fill(State state, uint32_t* mask);
  void make_room();  // between calls: drops what was kept where it takes too much memory

  GrammarAutomaton automaton_;
  const TokenTable& tokens_;
  const std::vector<int64_t>& end_ids_;
  size_t mask_words_;
  std::vector<uint32_t> masks_;    // one after the other
  std::vector<uint32_t> mask_of_;  // by state: where in masks_ it begins, kNone or (beyond the end) none
  std::vector<State> states_;      // while a mask is made: by bytes of a token
  uint32_t generation_ = 0;        // counts the times that states were dropped
};

// One text on its way through a grammar.
class GrammarMatcher {
 public:
  explicit GrammarMatcher(Grammar& grammar) : grammar_(grammar) {}

  // See Grammar::mask. Fails where no token may follow, which is the vocabulary's fault: it lacks the bytes.
  Status mask(const uint32_t** mask);

  // Adds bytes to the text where they fit; false, and nothing is added, where they do not.
  bool accept(std::string_view bytes);

  // Whether the text is whole and nothing can be added.
  bool is_complete();

  // All bytes that must follow, one after the other; *complete: whether nothing can follow them.
  std::string forced(bool* complete);

 private:
  Grammar::State state();

  Grammar& grammar_;
  std::string text_;  // states are numbered anew after the grammar dropped them
  Grammar::State state_ = GrammarAutomaton::kStart;
  uint32_t generation_ = 0;
};

}  // namespace qwasm
