// What a grammar means for one sequence: which tokens may be drawn, and which are taken without being drawn.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "core/sample/grammar.h"
#include "core/text/tokenizer.h"

namespace qwasm {

class GrammarGuide {
 public:
  GrammarGuide(std::shared_ptr<Grammar> grammar, const Tokenizer& tokenizer, const std::vector<int64_t>& end_ids)
      : tokenizer_(tokenizer), end_ids_(end_ids), grammar_(std::move(grammar)), matcher_(*grammar_) {}

  // The next token, where only one text can follow: of the tokenizer's own division of that text, as far as what follows cannot change it.
  std::optional<int32_t> forced();

  // A bit for each token: whether it may be drawn. See Grammar::mask.
  Status mask(const uint32_t** mask);

  // After a token was drawn or taken.
  Status accept(int32_t id);

  // Whether the text is whole and nothing can follow, or an end token came.
  bool is_complete() { return ended_ || matcher_.is_complete(); }

 private:
  void look_ahead();

  const Tokenizer& tokenizer_;
  const std::vector<int64_t>& end_ids_;
  std::shared_ptr<Grammar> grammar_;
  GrammarMatcher matcher_;
  std::vector<int32_t> forced_;
  size_t taken_ = 0;     // of forced_
  bool looked_ = false;  // whether the rest of forced_ is all that can be said
  bool ended_ = false;
};

}  // namespace qwasm
