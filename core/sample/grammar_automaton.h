// A grammar as a machine that takes bytes: deterministic, and made as it runs.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/sample/grammar_graph.h"

namespace qwasm {

// Numbers sequences of words in the order of their first coming.
class SequenceTable {
 public:
  uint32_t add(const uint64_t* words, size_t count);
  std::span<const uint64_t> at(uint32_t index) const { return {pool_.data() + ends_[index], pool_.data() + ends_[index + 1]}; }
  size_t size() const { return ends_.size() - 1; }
  size_t bytes() const { return 8 * pool_.size() + 4 * (ends_.size() + slots_.size()); }
  void clear();

 private:
  static constexpr uint32_t kFree = UINT32_MAX;
  size_t slot_of(const uint64_t* words, size_t count) const;

  std::vector<uint64_t> pool_;
  std::vector<uint32_t> ends_ = std::vector<uint32_t>(1), slots_;
};

// A state of the machine is the set of all places in the grammar's graph, each with the stack of rules that wait for its rule's end, where the
// bytes so far may have led. Stacks share their lower parts. States and the way from one to the next are kept when they were made once.
class GrammarAutomaton {
 public:
  using State = uint32_t;
  static constexpr State kDead = 0;  // the bytes do not fit the grammar
  static constexpr State kStart = 1;
  static constexpr uint32_t kEndless = 1 << 16;
  static constexpr int kNoByte = -1, kManyBytes = -2;

  explicit GrammarAutomaton(GrammarGraph graph);

  State next(State state, uint32_t byte) {
    const State known = table_[state * classes_ + class_of_[byte]];
    return known != kUnknown ? known : make_next(state, byte);
  }
  // Whether the grammar may end here.
  bool accepts(State state) const;
  // The byte that must follow, or kNoByte, or kManyBytes.
  int only_byte(State state) const;
  // That many ordinary characters (all but control characters, " and \) may follow, whichever they are; up to kEndless. In free text this is
  // what makes it needless to look at the bytes of most tokens.
  uint32_t free_run(State state);

  // Forgets all states but kDead and kStart.
  void clear();
  size_t states() const { return states_.size(); }
  size_t bytes() const { return states_.bytes() + stacks_.bytes() + 4 * table_.size(); }
  // The grammar is so ambiguous that a state has too many places, or there are too many states: what leads on counts as dead.
  bool overfull() const { return overfull_; }

 private:
  // A place is a word: the graph's state, which is the high half, and its stack: 0 is the empty one.
  static uint64_t place(uint32_t state, uint32_t stack) { return static_cast<uint64_t>(state) << 32 | stack; }
  static constexpr State kUnknown = UINT32_MAX;

  State make_next(State state, uint32_t byte);
  State make_state();
  void close(uint64_t place);
  bool returns_at_once(uint32_t state) const;
  bool all_lead_to(State state, uint32_t low, uint32_t high, int further, State target);
  State after_any_character(State state);

  GrammarGraph graph_;
  uint8_t class_of_[256];  // bytes between which no edge tells apart are of one class
  uint32_t classes_ = 1;
  SequenceTable stacks_;  // the place where it goes on, below which the rest of the stack lies
  SequenceTable states_;  // places
  std::vector<State> table_;         // (states, classes)
  std::vector<uint32_t> free_runs_;  // by state; kUnknown
  std::vector<uint64_t> places_, waiting_;
  SequenceTable seen_;
  bool overfull_ = false;
};

}  // namespace qwasm
