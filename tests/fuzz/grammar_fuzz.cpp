// A grammar in GBNF, and a text on its way through it.
#include "core/sample/grammar.h"
#include "tests/fuzz/fuzz.h"

QWASM_FUZZ_TARGET(grammar) {
  static const qwasm::TokenTable tokens("ab\"{}1", {1, 2, 3, 4, 5, 6});
  static const std::vector<int64_t> ends = {6};
  std::unique_ptr<qwasm::Grammar> grammar;
  if (!qwasm::Grammar::make({bytes.data(), bytes.size()}, tokens, ends, 7, &grammar).ok()) return;
  qwasm::GrammarMatcher matcher(*grammar);
  const uint32_t* mask = nullptr;
  for (const char* text : {"a", "\"", "{", "1", "b"}) {
    (void)matcher.mask(&mask);
    matcher.accept(text);
  }
}
