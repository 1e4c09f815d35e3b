// The subset construction over a graph with calls, one state at a time.
#include "core/sample/grammar_automaton.h"

#include <algorithm>

#include "core/base/sort.h"

namespace qwasm {

namespace {

using Kind = GrammarGraph::Kind;

constexpr uint64_t kAccepting = 0;  // as a place, it says that the grammar may end: the graph's state 0, root's start, takes no byte itself
constexpr size_t kMaxPlaces = 1 << 15;
constexpr size_t kMaxBytes = 64 << 20;

}  // namespace

void SequenceTable::clear() {
  pool_.clear();
  ends_.resize(1);
  for (uint32_t& slot : slots_) slot = kFree;
}

size_t SequenceTable::slot_of(const uint64_t* words, size_t count) const {
  uint64_t hash = count;
  for (size_t i = 0; i < count; ++i) hash = (hash ^ words[i]) * 0x9e3779b97f4a7c15, hash ^= hash >> 29;
  for (size_t slot = hash >> 16;; ++slot) {
    slot &= slots_.size() - 1;
    if (slots_[slot] == kFree) return slot;
    const auto known = at(slots_[slot]);
    if (known.size() == count && std::equal(words, words + count, known.data())) return slot;
  }
}

uint32_t SequenceTable::add(const uint64_t* words, size_t count) {
  if (2 * (size() + 1) > slots_.size()) {
    slots_.resize(slots_.empty() ? 16 : 4 * slots_.size());
    for (uint32_t& slot : slots_) slot = kFree;
    for (uint32_t i = 0; i < size(); ++i) slots_[slot_of(at(i).data(), at(i).size())] = i;
  }
  uint32_t& slot = slots_[slot_of(words, count)];
  if (slot == kFree) {
    slot = static_cast<uint32_t>(size());
    for (size_t i = 0; i < count; ++i) pool_.push_back(words[i]);
    ends_.push_back(static_cast<uint32_t>(pool_.size()));
  }
  return slot;
}

GrammarAutomaton::GrammarAutomaton(GrammarGraph graph) : graph_(std::move(graph)) {
  bool cut[257] = {};
  for (uint32_t i = 0; i < graph_.edges.size(); ++i) {
    const auto edge = graph_.edge(i);
    if (edge.kind() == Kind::kByte) cut[edge.low()] = cut[edge.high() + 1] = true;
  }
  cut[0] = false;
  for (size_t byte = 0; byte < 256; ++byte) class_of_[byte] = static_cast<uint8_t>((classes_ += cut[byte]) - 1);
  clear();
}

void GrammarAutomaton::clear() {
  stacks_.clear();
  states_.clear();
  table_.clear();
  free_runs_.clear();
  stacks_.add(nullptr, 0);
  make_state();  // kDead
  for (State& state : table_) state = kDead;
  close(place(graph_.rule_start[0], 0));
  make_state();
}

// What is reached without a byte, from one place: added to places_ where a byte can follow.
void GrammarAutomaton::close(uint64_t from) {
  waiting_.push_back(from);
  while (!waiting_.empty()) {
    const uint64_t at = waiting_.back();
    waiting_.pop_back();
    const size_t before = seen_.size();
    if (seen_.add(&at, 1) < before) continue;
    overfull_ = overfull_ || before >= kMaxPlaces || bytes() > kMaxBytes;
    if (overfull_) return waiting_.clear();
    const auto state = static_cast<uint32_t>(at >> 32), stack = static_cast<uint32_t>(at);
    bool takes_bytes = false;
    for (uint32_t i = graph_.first_edge[state]; i < graph_.first_edge[state + 1]; ++i) {
      const auto edge = graph_.edge(i);
      const uint64_t after = place(edge.to(), stack);
      if (edge.kind() == Kind::kByte) {
        takes_bytes = true;
      } else if (edge.kind() == Kind::kEmpty) {
        waiting_.push_back(after);
      } else if (edge.kind() == Kind::kCall) {
        waiting_.push_back(place(graph_.rule_start[edge.rule()], returns_at_once(edge.to()) ? stack : stacks_.add(&after, 1)));
      } else if (stack == 0) {
        places_.push_back(kAccepting);
      } else {
        waiting_.push_back(stacks_.at(stack)[0]);
      }
    }
    if (takes_bytes) places_.push_back(at);
  }
}

// Whether nothing but the rule's end follows: then a call from there need not come back, and repetition by recursion needs no stack.
bool GrammarAutomaton::returns_at_once(uint32_t state) const {
  for (;;) {
    const uint32_t first = graph_.first_edge[state];
    const auto edge = graph_.edge(first);
    if (edge.kind() == Kind::kEnd) return true;
    if (graph_.first_edge[state + 1] != first + 1 || edge.kind() != Kind::kEmpty) return false;
    state = edge.to();
  }
}

// The state of the places that were gathered.
GrammarAutomaton::State GrammarAutomaton::make_state() {
  sort_words(&places_);
  size_t count = 0;
  for (size_t i = 0; i < places_.size() && !overfull_; ++i) {
    if (count == 0 || places_[count - 1] != places_[i]) places_[count++] = places_[i];
  }
  const State state = states_.add(places_.data(), count);
  places_.clear();
  seen_.clear();
  if (free_runs_.size() < states_.size()) {
    table_.resize(states_.size() * classes_, kUnknown);
    free_runs_.push_back(kUnknown);
  }
  return state;
}

GrammarAutomaton::State GrammarAutomaton::make_next(State state, uint32_t byte) {
  std::vector<uint64_t> reached;  // closing adds states, which may move what is being read
  for (const uint64_t at : states_.at(state)) {
    for (uint32_t i = graph_.first_edge[at >> 32]; i < graph_.first_edge[(at >> 32) + 1]; ++i) {
      const auto edge = graph_.edge(i);
      if (edge.kind() == Kind::kByte && edge.low() <= byte && byte <= edge.high()) reached.push_back(place(edge.to(), static_cast<uint32_t>(at)));
    }
  }
  for (const uint64_t at : reached) close(at);
  const State made = make_state();
  table_[state * classes_ + class_of_[byte]] = made;
  return made;
}

bool GrammarAutomaton::accepts(State state) const {
  const auto places = states_.at(state);
  return !places.empty() && places[0] == kAccepting;
}

int GrammarAutomaton::only_byte(State state) const {
  int only = kNoByte;
  for (const uint64_t at : states_.at(state)) {
    for (uint32_t i = graph_.first_edge[at >> 32]; i < graph_.first_edge[(at >> 32) + 1]; ++i) {
      const auto edge = graph_.edge(i);
      if (edge.kind() != Kind::kByte) continue;
      const int low = static_cast<int>(edge.low());
      only = edge.low() == edge.high() && (only == kNoByte || only == low) ? low : kManyBytes;
    }
  }
  return only;
}

// Whether all sequences of a byte from low to high and `further` continuation bytes lead to `target`.
bool GrammarAutomaton::all_lead_to(State state, uint32_t low, uint32_t high, int further, State target) {
  for (uint32_t byte = low; byte <= high; ++byte) {
    if (byte > low && class_of_[byte] == class_of_[byte - 1]) continue;
    const State reached = next(state, byte);
    if (reached == kDead || (further == 0 ? reached != target : !all_lead_to(reached, 0x80, 0xbf, further - 1, target))) return false;
  }
  return true;
}

// The state that every ordinary character leads to, or kDead.
GrammarAutomaton::State GrammarAutomaton::after_any_character(State state) {
  struct Form {
    uint8_t first, low, high;  // a first byte whose second one is limited, or 0
    uint8_t further;
  };
  const State target = next(state, ' ');
  if (target == kDead) return kDead;
  static constexpr Form kForms[] = {{0, 0x20, 0x21, 0},    {0, 0x23, 0x5b, 0},    {0, 0x5d, 0x7e, 0}, {0, 0xc2, 0xdf, 1},    {0xe0, 0xa0, 0xbf, 1}, {0, 0xe1, 0xec, 2},
                             {0xed, 0x80, 0x9f, 1}, {0, 0xee, 0xef, 2},    {0xf0, 0x90, 0xbf, 2}, {0, 0xf1, 0xf3, 3}, {0xf4, 0x80, 0x8f, 2}};
  for (const Form& form : kForms) {
    const State from = form.first ? next(state, form.first) : state;
    if (from == kDead || !all_lead_to(from, form.low, form.high, form.further, target)) return kDead;
  }
  return target;
}

uint32_t GrammarAutomaton::free_run(State state) {
  if (free_runs_[state] != kUnknown) return free_runs_[state];
  // Each state has one that follows, so the way ends in a state without one, in one that is known, in a circle, or where nobody looks that far.
  constexpr size_t kFar = 512;
  std::vector<State> way;
  State at = state;
  while (at != kDead && free_runs_[at] == kUnknown && way.size() < kFar) {
    free_runs_[at] = kEndless;  // right where the way comes back here
    way.push_back(at);
    at = after_any_character(at);
  }
  const bool cut_off = at != kDead && free_runs_[at] == kUnknown;
  uint32_t run = at == kDead || cut_off ? 0 : free_runs_[at] + 1;
  for (size_t i = way.size(); i-- > 0; ++run) free_runs_[way[i]] = cut_off && run < kFar / 2 ? kUnknown : std::min(run, kEndless);
  return free_runs_[state];
}

}  // namespace qwasm
