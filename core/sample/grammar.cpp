// Masks by one walk over the sorted vocabulary.
#include "core/sample/grammar.h"

namespace qwasm {

namespace {

constexpr uint32_t kNone = UINT32_MAX;
constexpr size_t kMaxMaskWords = 2 << 20;  // some 440 masks of Qwen3's vocabulary
constexpr size_t kMaxStateBytes = 16 << 20;
constexpr size_t kMaxForced = 1 << 10;

Status too_ambiguous() { return error(Code::kUnsupported, "grammar: one text can be read in more ways than can be followed (32768 places, 64 MB)"); }

}  // namespace

Grammar::Grammar(GrammarGraph graph, const TokenTable& tokens, const std::vector<int64_t>& end_ids, int64_t mask_bits)
    : automaton_(std::move(graph)), tokens_(tokens), end_ids_(end_ids), mask_words_(static_cast<size_t>(mask_bits + 31) / 32), states_(TokenTable::kLongest + 1) {}

Status Grammar::make(std::string_view text, const TokenTable& tokens, const std::vector<int64_t>& end_ids, int64_t mask_bits,
                     std::unique_ptr<Grammar>* grammar) {
  GrammarGraph graph;
  QW_TRY(parse_grammar(text, &graph));
  grammar->reset(new Grammar(std::move(graph), tokens, end_ids, mask_bits));
  return (*grammar)->automaton_.overfull() ? too_ambiguous() : Status();
}

void Grammar::fill(State state, uint32_t* mask) {
  const TokenTable::Token* token = tokens_.tokens().data();
  const TokenTable::Token* const end = token + tokens_.tokens().size();
  const uint8_t* const bytes = tokens_.bytes();
  State* const states = states_.data();
  const size_t mask_bits = 32 * mask_words_;
  const auto allow = [&](size_t id) {
    if (id < mask_bits) mask[id / 32] |= 1u << id % 32;
  };
  if (automaton_.accepts(state)) {
    for (const int64_t id : end_ids_) allow(static_cast<size_t>(id));
  }
  size_t known = 0;  // states[0 … known] are those of the last token's bytes
  states[0] = state;
  while (token < end) {
    const size_t length = token->length;
    if (known > token->shared) known = token->shared;
    size_t at = known;
    if (token->free_from <= at && length - at <= automaton_.free_run(states[at])) {
      at = length;
    } else {
      const uint8_t* const text = bytes + token->offset;
      while (at < length && (states[at + 1] = automaton_.next(states[at], text[at])) != GrammarAutomaton::kDead) ++at;
      known = at;
    }
    if (at == length) {
      allow(static_cast<size_t>(token->id));
      ++token;
    } else {
      do ++token;
      while (token < end && token->shared > at);  // these have the byte that does not fit
    }
  }
}

const uint32_t* Grammar::mask(State state) {
  if (masks_.size() > kMaxMaskWords) {
    masks_.clear();
    mask_of_.clear();
  }
  if (mask_of_.size() <= state) mask_of_.resize(state + 1, kNone);
  if (mask_of_[state] == kNone) {
    mask_of_[state] = static_cast<uint32_t>(masks_.size());
    masks_.resize(masks_.size() + mask_words_);
    fill(state, masks_.data() + mask_of_[state]);
  }
  const uint32_t* const made = masks_.data() + mask_of_[state];
  uint32_t any = 0;
  for (size_t i = 0; i < mask_words_; ++i) any |= made[i];
  return any != 0 ? made : nullptr;
}

void Grammar::make_room() {
  if (automaton_.bytes() < kMaxStateBytes) return;
  automaton_.clear();
  masks_.clear();
  mask_of_.clear();
  ++generation_;
}

Grammar::State GrammarMatcher::state() {
  grammar_.make_room();
  if (generation_ != grammar_.generation_) {
    generation_ = grammar_.generation_;
    state_ = GrammarAutomaton::kStart;
    for (const char byte : text_) state_ = grammar_.automaton_.next(state_, static_cast<uint8_t>(byte));
  }
  return state_;
}

Status GrammarMatcher::mask(const uint32_t** mask) {
  *mask = grammar_.mask(state());
  if (grammar_.automaton_.overfull()) return too_ambiguous();
  if (*mask) return {};
  const size_t skipped = text_.size() > 40 ? text_.size() - 40 : 0;
  return error(Code::kUnsupported, "grammar: no token of the vocabulary can follow '%s'", text_.c_str() + skipped);
}

bool GrammarMatcher::accept(std::string_view bytes) {
  Grammar::State reached = state();
  for (const char byte : bytes) reached = grammar_.automaton_.next(reached, static_cast<uint8_t>(byte));
  if (reached == GrammarAutomaton::kDead) return false;
  state_ = reached;
  text_ += bytes;
  return true;
}

bool GrammarMatcher::is_complete() { return grammar_.automaton_.only_byte(state()) == GrammarAutomaton::kNoByte; }

std::string GrammarMatcher::forced(bool* complete) {
  GrammarAutomaton& automaton = grammar_.automaton_;
  std::string bytes;
  Grammar::State at = state();
  int byte = automaton.only_byte(at);
  for (; byte >= 0 && !automaton.accepts(at) && bytes.size() < kMaxForced; byte = automaton.only_byte(at)) {
    bytes.push_back(static_cast<char>(byte));
    at = automaton.next(at, static_cast<uint8_t>(byte));
  }
  *complete = byte == GrammarAutomaton::kNoByte;
  return bytes;
}

}  // namespace qwasm
