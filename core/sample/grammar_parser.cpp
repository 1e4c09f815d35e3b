// Reads GBNF: a recursive descent that makes the graph as it goes. It is written to be small in wasm: failures are kept, not handed up.
#include "core/base/sort.h"
#include "core/sample/grammar_graph.h"

namespace qwasm {

namespace {

using Kind = GrammarGraph::Kind;
using Words = std::vector<uint64_t>;
using Numbers = std::vector<uint32_t>;

constexpr size_t kMaxTextBytes = 1 << 18;
constexpr size_t kMaxEdges = 1 << 18;  // then states are below 2^20
constexpr size_t kMaxRules = 1 << 13;
constexpr int kMaxDepth = 100;  // of groups
constexpr uint32_t kNoLimit = UINT32_MAX;
constexpr uint32_t kLastChar = 0x10ffff;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word(char c) { return ((c | 32) >= 'a' && (c | 32) <= 'z') || is_digit(c) || c == '-' || c == '_'; }

uint32_t write_character(uint32_t code, uint8_t* out) {
  const uint32_t length = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
  for (uint32_t i = length; i-- > 1; code >>= 6) out[i] = static_cast<uint8_t>(0x80 | (code & 0x3f));
  out[0] = static_cast<uint8_t>(length == 1 ? code : (0xf00 >> length & 0xff) | code);
  return length;
}

class Parser {
 public:
  Parser(std::string_view text, GrammarGraph* graph) : text_(text), graph_(*graph) {}

  Status parse();

 private:
  struct Rule {
    std::string_view name;
    uint32_t start, end;
    size_t place;  // of its definition, or else of its first mention
    bool defined;
  };

  // Reading. What returns false has left its failure in status_.
  int line_of(size_t at) const;
  bool fail(const char* expected);
  bool fail_rule(const Rule& rule, const char* what);
  char peek(size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
  bool take(char c);
  void skip_space();
  std::string_view word();
  bool take_is();
  bool at_definition();
  bool character(uint32_t* code);
  bool number(uint32_t* value);

  // Grammar: each makes the graph of what it reads, from a state that is there to one that it tells.
  bool rule();
  bool alternatives(uint32_t from, uint32_t to);
  bool element(uint32_t from, uint32_t* to);
  bool bounds(uint32_t* least, uint32_t* most);
  bool copy(size_t begin, uint32_t* start, uint32_t* to);
  bool primary(uint32_t from, uint32_t* to);
  bool literal(uint32_t from, uint32_t* to);
  bool char_class(uint32_t from, uint32_t to);

  uint32_t new_state() { return states_++; }
  void edge(Kind kind, uint32_t from, uint32_t to, uint32_t label = 0) { graph_.edges.push_back(GrammarGraph::Edge::word(kind, from, to, label)); }
  void byte(uint32_t from, uint32_t to, uint32_t low, uint32_t high) { edge(Kind::kByte, from, to, low << 8 | high); }
  void empty(uint32_t from, uint32_t to) { edge(Kind::kEmpty, from, to); }
  void chars(uint32_t low, uint32_t high, uint32_t from, uint32_t* tails);
  void bytes(const uint8_t* low, const uint8_t* high, uint32_t length, uint32_t from, uint32_t* tails);
  uint32_t rule_of(std::string_view name);

  // Checks of the whole.
  void sort_edges();
  bool walk(uint32_t rule, bool over_bytes, const Numbers& passable, Numbers* calls);
  Numbers fixpoint(bool over_bytes);
  bool check_names();
  bool check_left_recursion();

  std::string_view text_;
  GrammarGraph& graph_;
  Status status_;
  size_t at_ = 0;
  int depth_ = 0;
  uint32_t states_ = 0;
  std::vector<Rule> rules_;
  Numbers seen_;  // by state: the last walk that came by
  uint32_t walks_ = 0;
};

int Parser::line_of(size_t at) const {
  int line = 1;
  while (at-- > 0) line += text_[at] == '\n';
  return line;
}

bool Parser::fail(const char* expected) {
  uint32_t code;
  const uint32_t length = read_character(text_.substr(at_), &code);
  const bool shown = length > 0 && code >= ' ';
  const char* const instead = at_ == text_.size() ? "the end" : code == '\n' ? "a line break" : "a control character";
  status_ = error(Code::kInvalidArgument, "grammar, line %d: expected %s, found %s%.*s%s", line_of(at_), expected, shown ? "'" : instead,
                  shown ? static_cast<int>(length) : 0, text_.data() + at_, shown ? "'" : "");
  return false;
}

bool Parser::fail_rule(const Rule& rule, const char* what) {
  status_ = error(Code::kInvalidArgument, "grammar, line %d: the rule '%.*s' %s", line_of(rule.place), static_cast<int>(rule.name.size()), rule.name.data(), what);
  return false;
}

bool Parser::take(char c) {
  const bool found = at_ < text_.size() && text_[at_] == c;
  at_ += found;
  return found;
}

void Parser::skip_space() {
  for (bool comment = false; at_ < text_.size(); ++at_) {
    const char c = text_[at_];
    comment = c != '\n' && (comment || c == '#');
    if (!comment && c != ' ' && c != '\t' && c != '\r' && c != '\n') return;
  }
}

std::string_view Parser::word() {
  const size_t begin = at_;
  while (is_word(peek())) ++at_;
  return text_.substr(begin, at_ - begin);
}

bool Parser::take_is() {
  skip_space();
  const bool found = peek() == ':' && peek(1) == ':' && peek(2) == '=';
  at_ += found ? 3 : 0;
  return found;
}

// Whether a rule's name and ::= follow, which is where the rule before ends.
bool Parser::at_definition() {
  const size_t begin = at_;
  const bool found = !word().empty() && take_is();
  at_ = begin;
  return found;
}

uint32_t Parser::rule_of(std::string_view name) {
  uint32_t index = 0;
  while (index < rules_.size() && rules_[index].name != name) ++index;
  if (index == rules_.size()) {
    const uint32_t start = new_state();
    rules_.push_back({name, start, new_state(), at_ < name.size() ? 0 : at_ - name.size(), false});
  }
  return index;
}

// One character of a literal or class, which may be written as an escape.
bool Parser::character(uint32_t* code) {
  const uint32_t length = read_character(text_.substr(at_), code);
  if (length == 0) return fail("a character in UTF-8");
  at_ += length;
  if (*code != '\\') return true;
  const char kind = peek();
  const int digits = kind == 'x' ? 2 : kind == 'u' ? 4 : kind == 'U' ? 8 : 0;
  if (digits == 0) {
    constexpr std::string_view kNames = "nrt\\\"[]-^", kMeant = "\n\r\t\\\"[]-^";
    const size_t index = kNames.find(kind);
    if (index == kNames.npos) return fail("an escape: one of n r t \\ \" [ ] - ^ x u U");
    *code = static_cast<uint8_t>(kMeant[index]);
  } else {
    *code = 0;
    for (int i = 0; i < digits; ++i) {
      ++at_;
      const char c = peek(), letter = c | 32;
      if (!is_digit(c) && !(letter >= 'a' && letter <= 'f')) return fail("a hexadecimal digit");
      *code = *code << 4 | static_cast<uint32_t>(is_digit(c) ? c - '0' : letter - 'a' + 10);
    }
    if (*code > kLastChar || (*code >= 0xd800 && *code <= 0xdfff)) return fail("the number of a Unicode character");
  }
  ++at_;
  return true;
}

bool Parser::number(uint32_t* value) {
  skip_space();
  if (!is_digit(peek())) return fail("a number");
  for (*value = 0; is_digit(peek()); ++at_) {
    *value = *value * 10 + static_cast<uint32_t>(peek() - '0');
    if (*value > kMaxEdges) return fail("at most 262144 repetitions");
  }
  skip_space();
  return true;
}

bool Parser::rule() {
  const size_t place = at_;
  const std::string_view name = word();
  if (name.empty()) return fail("the name of a rule");
  const uint32_t index = rule_of(name);
  const uint32_t start = rules_[index].start, end = rules_[index].end;
  const bool again = rules_[index].defined;
  rules_[index] = {name, start, end, place, true};
  if (again) return fail_rule(rules_[index], "is defined twice");
  if (rules_.size() > kMaxRules) return fail("at most 8192 rules");
  return take_is() ? alternatives(start, end) : fail("::=");
}

bool Parser::alternatives(uint32_t from, uint32_t to) {
  if (++depth_ > kMaxDepth) return fail("at most 100 groups inside each other");
  do {
    uint32_t end = from;
    for (skip_space(); at_ < text_.size() && peek() != '|' && peek() != ')' && !at_definition(); skip_space()) {
      if (!element(end, &end)) return false;
    }
    empty(end, to);
  } while (take('|'));
  --depth_;
  return true;
}

// The operator that may follow an element.
bool Parser::bounds(uint32_t* least, uint32_t* most) {
  skip_space();
  const char operation = peek();
  *least = operation == '*' || operation == '?' ? 0 : 1;
  *most = operation == '*' || operation == '+' ? kNoLimit : 1;
  if (take('*') || take('+') || take('?') || !take('{')) return true;
  if (!number(least)) return false;
  *most = *least;
  if (take(',')) {
    skip_space();
    *most = kNoLimit;
    if (peek() != '}' && !number(most)) return false;
  }
  if (*most < *least) return fail("an upper bound that is not below the lower one");
  return take('}') || fail("}");
}

// Reads an element (again), so that it follows *to; *start: where this copy begins, which is a state of its own.
bool Parser::copy(size_t begin, uint32_t* start, uint32_t* to) {
  if (graph_.edges.size() > kMaxEdges) return fail("a grammar that needs at most 262144 edges");
  const size_t end = at_;
  at_ = begin;
  *start = new_state();
  empty(*to, *start);
  const bool good = primary(*start, to);
  if (good && begin < end) at_ = end;
  return good;
}

bool Parser::element(uint32_t from, uint32_t* to) {
  const size_t begin = at_, edges_before = graph_.edges.size();
  uint32_t start, least, most, count = 1;
  *to = from;
  if (!copy(begin, &start, to) || !bounds(&least, &most)) return false;
  if (most == 0) {
    graph_.edges.resize(edges_before);
    *to = from;
    return true;
  }
  for (; count < least; ++count) {
    if (!copy(begin, &start, to)) return false;
  }
  if (most == kNoLimit) {
    empty(*to, start);
    if (least == 0) *to = start;
    return true;
  }
  const uint32_t after = new_state();
  if (least == 0) empty(start, after);
  for (; count < most; ++count) {
    empty(*to, after);
    if (!copy(begin, &start, to)) return false;
  }
  empty(*to, after);
  *to = after;
  return true;
}

bool Parser::primary(uint32_t from, uint32_t* to) {
  if (take('"')) return literal(from, to);
  *to = new_state();
  if (peek() == '[' || peek() == '.') return char_class(from, *to);
  if (take('(')) return alternatives(from, *to) && (take(')') || fail("| or )"));
  const std::string_view name = word();
  if (name.empty()) return fail("a literal, a character class, a group or the name of a rule");
  edge(Kind::kCall, from, *to, rule_of(name));
  return true;
}

bool Parser::literal(uint32_t from, uint32_t* to) {
  *to = from;
  while (!take('"')) {
    if (at_ == text_.size()) return fail("the literal's closing \"");
    uint32_t code;
    uint8_t encoded[4];
    if (!character(&code)) return false;
    const uint32_t length = write_character(code, encoded);
    for (uint32_t i = 0; i < length; ++i, from = *to) byte(from, *to = new_state(), encoded[i], encoded[i]);
  }
  return true;
}

bool Parser::char_class(uint32_t from, uint32_t to) {
  Words ranges;  // high words: first characters, low words: last ones
  bool negated = take('.');
  if (!negated) {
    take('[');
    negated = take('^');
    while (!take(']')) {
      if (at_ == text_.size()) return fail("the class's closing ]");
      uint32_t low, high;
      if (!character(&low)) return false;
      high = low;
      if (peek() == '-' && peek(1) != ']' && peek(1) != '\0') {
        ++at_;
        if (!character(&high)) return false;
        if (high < low) return fail("a range whose end is not before its beginning");
      }
      ranges.push_back(static_cast<uint64_t>(low) << 32 | high);
    }
  }
  sort_words(&ranges);
  ranges.push_back(static_cast<uint64_t>(kLastChar + 1) << 32);
  uint32_t tails[4] = {to, 0, 0, 0};  // states from which that many continuation bytes lead to `to`; 0: not made yet (state 0 is a rule's start)
  const size_t before = graph_.edges.size();
  uint32_t next = 0;  // the first character that no range so far has
  for (const uint64_t range : ranges) {
    const auto low = static_cast<uint32_t>(range >> 32), high = static_cast<uint32_t>(range);
    if (negated && low > next) chars(next, low - 1, from, tails);
    if (!negated && high >= next) chars(low > next ? low : next, high, from, tails);
    if (next <= high) next = high + 1;
  }
  return graph_.edges.size() > before || fail("a class that has a character");
}

// Edges for a range of characters, surrogates left out.
void Parser::chars(uint32_t low, uint32_t high, uint32_t from, uint32_t* tails) {
  for (const uint32_t last : {0x7fu, 0x7ffu, 0xd7ffu, 0xdfffu, 0xffffu, kLastChar}) {
    if (low > last || low > high) continue;
    uint8_t first_bytes[4], last_bytes[4];
    const uint32_t end = last < high ? last : high;
    const uint32_t length = write_character(low, first_bytes);
    write_character(end, last_bytes);
    if (last != 0xdfff) bytes(first_bytes, last_bytes, length, from, tails);
    low = end + 1;
  }
}

// All sequences from `low` to `high`, of equal length, as edges to tails[0].
void Parser::bytes(const uint8_t* low, const uint8_t* high, uint32_t length, uint32_t from, uint32_t* tails) {
  static constexpr uint8_t kLowest[] = {0x80, 0x80, 0x80}, kHighest[] = {0xbf, 0xbf, 0xbf};
  uint32_t first = low[0], last = high[0];
  bool whole_low = true, whole_high = true;
  for (uint32_t i = 1; i < length; ++i) {
    whole_low &= low[i] == 0x80;
    whole_high &= high[i] == 0xbf;
    if (tails[i] == 0) byte(tails[i] = new_state(), tails[i - 1], 0x80, 0xbf);
  }
  const auto one = [&](uint32_t value, const uint8_t* rest_low, const uint8_t* rest_high) {
    const uint32_t state = new_state();
    byte(from, state, value, value);
    bytes(rest_low, rest_high, length - 1, state, tails);
  };
  if (first == last && !(whole_low && whole_high)) return one(first, low + 1, high + 1);
  if (!whole_low) one(first++, low + 1, kHighest);
  if (!whole_high) one(last--, kLowest, high + 1);
  if (first <= last) byte(from, tails[length - 1], first, last);
}

void Parser::sort_edges() {
  sort_words(&graph_.edges);
  graph_.first_edge.resize(states_ + 1);
  uint32_t at = 0;
  for (uint32_t state = 0; state <= states_; ++state) {
    while (at < graph_.edges.size() && graph_.edge(at).from() < state) ++at;
    graph_.first_edge[state] = at;
  }
}

// Goes through a rule, over calls of `passable` rules and, where asked, over bytes; tells whether its end is reached. calls: of all that is met.
bool Parser::walk(uint32_t rule, bool over_bytes, const Numbers& passable, Numbers* calls) {
  Numbers waiting;
  waiting.push_back(rules_[rule].start);
  ++walks_;
  bool ended = false;
  while (!waiting.empty()) {
    const uint32_t state = waiting.back();
    waiting.pop_back();
    if (seen_[state] == walks_) continue;
    seen_[state] = walks_;
    for (uint32_t i = graph_.first_edge[state]; i < graph_.first_edge[state + 1]; ++i) {
      const auto edge = graph_.edge(i);
      const Kind kind = edge.kind();
      if (kind == Kind::kCall) calls->push_back(edge.rule());
      if (kind == Kind::kEnd) ended = true;
      else if (kind == Kind::kEmpty || (kind == Kind::kByte ? over_bytes : passable[edge.rule()] != 0)) waiting.push_back(edge.to());
    }
  }
  return ended;
}

// The rules that can end without any bytes, or at all.
Numbers Parser::fixpoint(bool over_bytes) {
  Numbers ends, calls;
  ends.resize(rules_.size());
  for (bool changed = true; changed;) {
    changed = false;
    for (auto i = static_cast<uint32_t>(rules_.size()); i-- > 0;) {  // rules mostly use later ones
      calls.clear();
      if (!ends[i] && walk(i, over_bytes, ends, &calls)) ends[i] = changed = true;
    }
  }
  return ends;
}

bool Parser::check_names() {
  const Numbers ends = fixpoint(true);
  Numbers all, reached, calls;
  all.resize(rules_.size(), 1);
  reached.resize(rules_.size());
  calls.push_back(0);
  for (size_t i = 0; i < calls.size(); ++i) {
    const uint32_t rule = calls[i];
    if (!reached[rule]) walk(rule, true, all, &calls);
    reached[rule] = 1;
  }
  static constexpr const char* kProblems[] = {"is not defined", "is not used by root or by what root uses", "can never end: each of its alternatives needs it again"};
  for (size_t problem = 0; problem < 3; ++problem) {
    for (size_t i = 0; i < rules_.size(); ++i) {
      if (!(problem == 0 ? rules_[i].defined : problem == 1 ? reached[i] : ends[i])) return fail_rule(rules_[i], kProblems[problem]);
    }
  }
  return true;
}

bool Parser::check_left_recursion() {
  const Numbers nullable = fixpoint(false);
  constexpr uint32_t kDone = UINT32_MAX;
  Numbers next, calls;  // next: of a rule that is not done, one that it may begin with and that is not done either
  next.resize(rules_.size());
  uint32_t left = 0;
  for (bool changed = true; changed;) {
    changed = false;
    for (auto i = static_cast<uint32_t>(rules_.size()); i-- > 0;) {
      if (next[i] == kDone) continue;
      calls.clear();
      walk(i, false, nullable, &calls);
      next[i] = kDone;
      for (const uint32_t call : calls) {
        if (call == i || next[call] != kDone) next[i] = call;
      }
      if (next[i] == kDone) changed = true;
      else left = i;
    }
  }
  if (next[left] == kDone) return true;
  for (size_t i = 0; i < rules_.size(); ++i) left = next[left];  // by then it goes round
  return fail_rule(rules_[left], "is left-recursive: it may begin with itself");
}

Status Parser::parse() {
  if (text_.size() > kMaxTextBytes) return error(Code::kInvalidArgument, "grammar: expected at most 262144 bytes, found %zu", text_.size());
  rule_of("root");
  for (skip_space(); at_ < text_.size(); skip_space()) {
    if (!rule()) return status_;
    if (at_ < text_.size() && !at_definition()) fail("| or a new rule");
    if (!status_.ok()) return status_;
  }
  for (const Rule& rule : rules_) {
    graph_.rule_start.push_back(rule.start);
    edge(Kind::kEnd, rule.end, rule.end);
  }
  seen_.resize(states_);
  sort_edges();
  if (rules_[0].defined ? check_names() : fail("a rule 'root'")) check_left_recursion();
  return status_;
}

}  // namespace

uint32_t read_character(std::string_view bytes, uint32_t* code) {
  *code = 0;
  if (bytes.empty()) return 0;
  const uint8_t first = static_cast<uint8_t>(bytes[0]);
  *code = first;
  if (first < 0x80) return 1;
  const uint32_t length = first < 0xc2 || first > 0xf4 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  if (length == 0 || bytes.size() < length) return 0;
  *code &= 0x7f >> length;
  for (uint32_t i = 1; i < length; ++i) {
    const uint8_t byte = static_cast<uint8_t>(bytes[i]);
    if ((byte & 0xc0) != 0x80) return 0;
    *code = *code << 6 | (byte & 0x3f);
  }
  const bool shorter = *code < (length == 3 ? 0x800u : length == 4 ? 0x10000u : 0u);
  return shorter || *code > kLastChar || (*code >= 0xd800 && *code <= 0xdfff) ? 0 : length;
}

Status parse_grammar(std::string_view text, GrammarGraph* graph) { return Parser(text, graph).parse(); }

}  // namespace qwasm
