// A grammar along one sequence.
#include "core/engine/grammar_guide.h"

#include "core/text/utf8.h"

namespace qwasm {

void GrammarGuide::look_ahead() {
  looked_ = true;
  taken_ = 0;
  bool complete = false;
  std::string text = matcher_.forced(&complete);
  if (const size_t invalid = find_invalid_utf8(text); invalid != text.npos) {
    text.resize(invalid);  // what comes is a character of which only the first bytes are sure
    complete = false;
  }
  if (!complete) text.resize(tokenizer_.settled_bytes(text));
  std::string bytes;
  if (tokenizer_.encode(text, false, 0, &forced_).ok()) {
    for (const int32_t id : forced_) tokenizer_.append_bytes(id, false, &bytes);
  }
  if (bytes != text) forced_.clear();  // the tokenizer normalizes it, so its tokens would be another text
}

std::optional<int32_t> GrammarGuide::forced() {
  if (!looked_ && !ended_) look_ahead();
  return taken_ < forced_.size() ? std::optional(forced_[taken_]) : std::nullopt;
}

Status GrammarGuide::mask(const uint32_t** mask) {
  if (ended_) return error(Code::kWrongState, "grammar: the text has ended");
  return matcher_.mask(mask);
}

Status GrammarGuide::accept(int32_t id) {
  looked_ = taken_ + 1 < forced_.size() && forced_[taken_] == id;
  ++taken_;
  for (const int64_t end : end_ids_) ended_ = ended_ || end == id;
  std::string bytes;
  if (!ended_) tokenizer_.append_bytes(id, false, &bytes);
  return ended_ || matcher_.accept(bytes) ? Status() : error(Code::kWrongState, "grammar: the token %d does not fit", id);
}

}  // namespace qwasm
