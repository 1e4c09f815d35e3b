// The course of one sequence.
#include "core/engine/session.h"

#include <algorithm>
#include <cstdio>

namespace qwasm {

Session::Session(const Config& config, CacheFormat cache_format, int64_t context_length, Forward& forward, const Tokenizer* tokenizer)
    : config_(config),
      context_length_(context_length),
      forward_(forward),
      cache_(config, cache_format),
      sampler_(config.vocab_size, [&](int32_t id) { return !tokenizer || tokenizer->has_token(id); }),
      tokenizer_(tokenizer),
      decoder_(tokenizer ? std::make_unique<StreamDecoder>(*tokenizer, /*skip_special=*/true) : nullptr) {}

Status Session::set_sampling(SamplingOptions options) {
  for (const auto& [id, bias] : options.logit_bias) {
    if (id < config_.vocab_size) continue;
    return error(Code::kInvalidArgument, "options: logit_bias: expected ids from 0 to %lld, found %d", static_cast<long long>(config_.vocab_size - 1), id);
  }
  sampler_.set(std::move(options));
  return {};
}

Status Session::check_ids(std::span<const int32_t> ids, const char* whose) const {
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] >= 0 && ids[i] < config_.vocab_size) continue;
    return error(Code::kInvalidArgument, "%s token %zu: expected an id from 0 to %lld, found %d", whose, i,
                 static_cast<long long>(config_.vocab_size - 1), ids[i]);
  }
  return {};
}

Status Session::set_prompt(std::span<const int32_t> ids, int64_t* kept) {
  if (ids.empty()) return error(Code::kInvalidArgument, "the prompt has no tokens");
  const auto count = static_cast<int64_t>(ids.size());
  if (count > context_length_) {
    return error(Code::kContextOverflow, "the prompt has %lld tokens, the context length is %lld", static_cast<long long>(count),
                 static_cast<long long>(context_length_));
  }
  QW_TRY(check_ids(ids, "prompt"));
  const int64_t comparable = std::min(run_, count - 1);
  run_ = std::mismatch(ids.begin(), ids.begin() + comparable, tokens_.begin()).first - ids.begin();
  tokens_.assign(ids.begin(), ids.end());
  prompt_ = count;
  has_logits_ = has_hidden_ = false;
  logits_rows_ = 0;
  if (decoder_) decoder_->reset();
  piece_ = {};
  *kept = run_;
  return {};
}

Status Session::append(int64_t length, std::span<const int32_t> ids) {
  if (length < std::max(run_, prompt_) || length > this->length() || ids.empty()) {
    return error(Code::kInvalidArgument, "append: expected tokens behind %lld to %lld others, found %zu behind %lld",
                 static_cast<long long>(std::max(run_, prompt_)), static_cast<long long>(this->length()), ids.size(), static_cast<long long>(length));
  }
  const auto count = static_cast<int64_t>(ids.size());
  if (length + count > context_length_ + 1) {  // the last token of all need not be run
    return error(Code::kContextOverflow, "the sequence would have %lld tokens, the context length is %lld", static_cast<long long>(length + count),
                 static_cast<long long>(context_length_));
  }
  QW_TRY(check_ids(ids, "appended"));
  tokens_.resize(static_cast<size_t>(length));
  tokens_.insert(tokens_.end(), ids.begin(), ids.end());
  has_logits_ = false;
  if (decoder_) decoder_->reset();
  piece_ = {};
  return {};
}

// Adds the next `count` tokens to *rows. Memory for them is what may be lacking, and then nothing has changed.
Status Session::add_rows(int64_t count, int64_t wanted_rows, Rows* rows) {
  QW_TRY(cache_.reserve(run_ + count));
  for (int64_t t = run_; t < run_ + count; ++t) rows->add({&cache_, tokens_[static_cast<size_t>(t)], t >= run_ + count - wanted_rows, t});
  return {};
}

// After a run of `count` tokens, with the last ones' logits in logits_.
Status Session::finish_run(int64_t count, int64_t logits_rows) {
  for (int64_t row = 0; row < logits_rows; ++row) {
    Status status = forward_.check_logits(logits_.data() + row * config_.vocab_size, run_ + count - logits_rows + row);
    if (!status.ok()) return forget(std::move(status));
  }
  run_ += count;
  logits_rows_ = logits_rows;
  has_logits_ = logits_rows > 0 && run_ == length();
  return {};
}

// Drops what the cache holds, which may be numbers that are not finite.
Status Session::forget(Status why) {
  cache_.clear();
  run_ = 0;
  return why;
}

Status Session::run(int64_t count, int64_t wanted_rows, bool head) {
  has_logits_ = false;
  Rows rows;
  QW_TRY(add_rows(count, wanted_rows, &rows));
  QW_TRY(forward_.run(rows.span(), head ? &logits_ : nullptr));
  return finish_run(count, head ? wanted_rows : 0);
}

Status Session::keep_hidden(const float* hidden) {
  Status status = forward_.check_hidden(hidden, prompt_ - 1);
  if (!status.ok()) return forget(std::move(status));
  std::copy_n(hidden, config_.hidden_size, hidden_.data());
  has_hidden_ = true;
  return {};
}

Status Session::prefill(int64_t max_tokens, int64_t logits_rows, int64_t* remaining) {
  if (max_tokens < 1) return error(Code::kInvalidArgument, "prefill: expected at least 1 token, found %lld", static_cast<long long>(max_tokens));
  const int64_t count = std::min({max_tokens, prompt_ - run_, Forward::kMaxTokens});
  if (logits_rows < kNoLogits || logits_rows > std::max<int64_t>(count, 0)) {
    return error(Code::kInvalidArgument, "prefill: expected -1 to %lld rows of logits, found %lld", static_cast<long long>(std::max<int64_t>(count, 0)),
                 static_cast<long long>(logits_rows));
  }
  if (hidden_.size() == 0) QW_TRY(hidden_.allocate(static_cast<uint64_t>(config_.hidden_size), "a hidden state"));
  if (count > 0) {
    const bool ends = run_ + count == prompt_;
    const int64_t wanted = std::max<int64_t>(logits_rows, ends ? 1 : 0);
    QW_TRY(run(count, wanted, logits_rows != kNoLogits));
    if (ends) QW_TRY(keep_hidden(forward_.final_hidden() + (wanted - 1) * config_.hidden_size));
  }
  *remaining = std::max<int64_t>(prompt_ - run_, 0);
  return {};
}

// Adds to *rows what must be run before a token can be drawn; where that is more than `most_rows`, the first of it runs at once.
Status Session::begin_step(int64_t most_rows, Rows* rows) {
  if (tokens_.empty() || run_ < prompt_) return error(Code::kWrongState, "step: the prompt has not been run");
  if (length() > context_length_) {
    return error(Code::kContextOverflow, "the sequence has %lld tokens, the context length is %lld", static_cast<long long>(length()),
                 static_cast<long long>(context_length_));
  }
  if (has_logits_ || (grammar_ && grammar_->forced())) return {};
  if (run_ == length()) return error(Code::kWrongState, "step: there are no logits; set the prompt first");
  while (length() - run_ > most_rows) QW_TRY(run(most_rows, 0));
  return add_rows(length() - run_, 1, rows);
}

// The logits of the last token, after a run in which this session's rows had a part.
Status Session::take_logits(const float* logits) {
  if (logits != logits_.data()) {
    const auto values = static_cast<size_t>(config_.vocab_size);
    if (logits_.size() < values) QW_TRY(logits_.allocate(values, "logits"));
    std::copy_n(logits, values, logits_.data());
  }
  return finish_run(length() - run_, 1);
}

Status Session::draw(int32_t* id) {
  const uint32_t* mask = nullptr;
  if (grammar_) QW_TRY(grammar_->mask(&mask));
  *id = sampler_.draw(last_logits(), tokens_, prompt_, mask);
  if (*id >= 0) return {};
  return error(Code::kInvalidArgument, "no token of the vocabulary is allowed after the %lld of the sequence", static_cast<long long>(length()));
}

Status Session::finish_step() {
  const std::optional<int32_t> forced = grammar_ ? grammar_->forced() : std::nullopt;
  int32_t id = 0;
  if (forced) id = *forced;
  else QW_TRY(draw(&id));
  if (grammar_) QW_TRY(grammar_->accept(id));
  tokens_.push_back(id);
  has_logits_ = false;
  piece_ = decoder_ ? decoder_->push(id) : std::string_view();
  return {};
}

void Session::step(std::span<Session* const> sessions) {
  Rows rows;
  const float* logits = nullptr;
  Session* first = nullptr;  // of those that run: the logits of all come to its memory, its own in front
  bool runs[kMostAtOnce];
  for (size_t i = 0; i < sessions.size(); ++i) {
    const int64_t before = rows.count;
    sessions[i]->stepped_ = sessions[i]->begin_step(Forward::kMaxTokens / static_cast<int64_t>(sessions.size()), &rows);
    runs[i] = rows.count > before;
    if (runs[i] && !first) first = sessions[i];
  }
  if (first) {
    const Status status = first->forward_.run(rows.span(), &first->logits_);
    logits = first->logits_.data();
    for (size_t i = 0; i < sessions.size(); ++i) {
      if (!runs[i]) continue;
      sessions[i]->stepped_ = status.ok() ? sessions[i]->take_logits(logits) : status;
      logits += first->config_.vocab_size;
    }
  }
  for (Session* session : sessions) {
    if (session->stepped_.ok()) session->stepped_ = session->finish_step();
  }
}

Status Session::restore(std::span<const int32_t> ids) {
  run_ = 0;
  int64_t kept = 0;
  QW_TRY(set_prompt(ids, &kept));
  QW_TRY(cache_.reserve(length()));
  run_ = length();
  return {};
}

Status Session::logprobs(int64_t top, std::string* json) {
  if (top < 0 || top > kMostLogprobs) {
    return error(Code::kInvalidArgument, "logprobs: expected 0 to %lld tokens, found %lld", static_cast<long long>(kMostLogprobs), static_cast<long long>(top));
  }
  while (prompt_ < length() && run_ + 1 < length()) {  // the token was not drawn, and what it followed has not been run
    QW_TRY(run(std::min(length() - 1 - run_, Forward::kMaxTokens), 1));
  }
  if (length() <= prompt_ || run_ + 1 != length() || logits_rows_ == 0) return error(Code::kWrongState, "logprobs: no step was made");
  const std::span<const float> logits(last_logits(), static_cast<size_t>(config_.vocab_size));
  const std::vector<Logprob> tokens = log_probabilities(logits, tokens_.back(), static_cast<size_t>(top));
  json->clear();
  append_logprob(tokens[0], json);
  *json += ",\"top\":[";
  for (size_t i = 1; i < tokens.size(); ++i) {
    if (i > 1) *json += ',';
    append_logprob(tokens[i], json);
    *json += '}';
  }
  *json += "]}";
  return {};
}

// {"id":…,"logprob":…,"bytes":[…] without the end. A float has its exact value in 17 digits of a double.
void Session::append_logprob(const Logprob& token, std::string* json) const {
  char text[80];
  const auto append = [&](const char* format, auto value) { json->append(text, static_cast<size_t>(std::snprintf(text, sizeof text, format, value))); };
  append("{\"id\":%d", token.id);
  append(",\"logprob\":%.17g,\"bytes\":[", static_cast<double>(token.logprob));
  std::string bytes;
  if (tokenizer_) tokenizer_->append_bytes(token.id, /*skip_special=*/false, &bytes);
  for (size_t i = 0; i < bytes.size(); ++i) append(i > 0 ? ",%d" : "%d", static_cast<uint8_t>(bytes[i]));
  *json += ']';
}

void Session::flush() { piece_ = decoder_ ? decoder_->flush() : std::string_view(); }

}  // namespace qwasm
