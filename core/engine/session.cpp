// The course of one sequence.
#include "core/engine/session.h"

#include <algorithm>

namespace qwasm {

Session::Session(const Config& config, CacheFormat cache_format, int64_t context_length, Forward& forward, const Tokenizer* tokenizer)
    : config_(config),
      context_length_(context_length),
      forward_(forward),
      cache_(config, cache_format),
      sampler_(config.vocab_size, [&](int32_t id) { return !tokenizer || tokenizer->has_token(id); }),
      decoder_(tokenizer ? std::make_unique<StreamDecoder>(*tokenizer, /*skip_special=*/true) : nullptr) {}

Status Session::set_prompt(std::span<const int32_t> ids, int64_t* kept) {
  if (ids.empty()) return error(Code::kInvalidArgument, "the prompt has no tokens");
  const auto count = static_cast<int64_t>(ids.size());
  if (count > context_length_) {
    return error(Code::kContextOverflow, "the prompt has %lld tokens, the context length is %lld", static_cast<long long>(count),
                 static_cast<long long>(context_length_));
  }
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] >= 0 && ids[i] < config_.vocab_size) continue;
    return error(Code::kInvalidArgument, "prompt token %zu: expected an id from 0 to %lld, found %d", i,
                 static_cast<long long>(config_.vocab_size - 1), ids[i]);
  }
  const int64_t comparable = std::min(run_, count - 1);
  run_ = std::mismatch(ids.begin(), ids.begin() + comparable, tokens_.begin()).first - ids.begin();
  tokens_.assign(ids.begin(), ids.end());
  prompt_ = count;
  has_logits_ = false;
  if (decoder_) decoder_->reset();
  piece_ = {};
  *kept = run_;
  return {};
}

Status Session::run(int64_t count, int64_t logits_rows) {
  const std::span<const int32_t> ids(tokens_.data() + run_, static_cast<size_t>(count));
  has_logits_ = false;
  const Status status = forward_.run(cache_, ids, run_, logits_rows, &logits_);
  if (!status.ok()) {  // the cache may hold numbers that are not finite
    cache_.clear();
    run_ = 0;
    return status;
  }
  run_ += count;
  logits_rows_ = logits_rows;
  has_logits_ = logits_rows > 0 && run_ == length();
  return {};
}

Status Session::prefill(int64_t max_tokens, int64_t logits_rows, int64_t* remaining) {
  if (max_tokens < 1) return error(Code::kInvalidArgument, "prefill: expected at least 1 token, found %lld", static_cast<long long>(max_tokens));
  const int64_t count = std::min({max_tokens, prompt_ - run_, Forward::kMaxTokens});
  if (logits_rows < 0 || logits_rows > std::max<int64_t>(count, 0)) {
    return error(Code::kInvalidArgument, "prefill: expected 0 to %lld rows of logits, found %lld", static_cast<long long>(std::max<int64_t>(count, 0)),
                 static_cast<long long>(logits_rows));
  }
  if (count > 0) QW_TRY(run(count, run_ + count == prompt_ ? std::max<int64_t>(logits_rows, 1) : logits_rows));
  *remaining = std::max<int64_t>(prompt_ - run_, 0);
  return {};
}

Status Session::step(int32_t* id) {
  if (tokens_.empty() || run_ < prompt_) return error(Code::kWrongState, "step: the prompt has not been run");
  if (!has_logits_) {
    if (run_ >= context_length_) {
      return error(Code::kContextOverflow, "the sequence has %lld tokens, the context length is %lld", static_cast<long long>(length()),
                   static_cast<long long>(context_length_));
    }
    QW_TRY(run(1, 1));
  }
  *id = sampler_.draw(logits_.data() + (logits_rows_ - 1) * config_.vocab_size, tokens_);
  tokens_.push_back(*id);
  has_logits_ = false;
  piece_ = decoder_ ? decoder_->push(*id) : std::string_view();
  return {};
}

void Session::flush() { piece_ = decoder_ ? decoder_->flush() : std::string_view(); }

}  // namespace qwasm
