// One sequence of tokens in time: prompt, prefill by slices, steps. It keeps what its KV cache already holds.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/engine/grammar_guide.h"
#include "core/model/forward.h"
#include "core/sample/logprobs.h"
#include "core/sample/sampler.h"
#include "core/text/stream_decoder.h"

namespace qwasm {

class Session {
 public:
  static constexpr int64_t kMostLogprobs = 20;  // as in OpenAI's interface
  static constexpr size_t kMostAtOnce = 16;

  // `forward` is shared by the sessions of an engine, which run one after the other or as a batch; `tokenizer` may be null.
  Session(const Config& config, CacheFormat cache_format, int64_t context_length, Forward& forward, const Tokenizer* tokenizer);

  Status set_sampling(SamplingOptions options);

  // What the following steps draw follows a grammar; null: it is free.
  void set_grammar(std::unique_ptr<GrammarGuide> grammar) { grammar_ = std::move(grammar); }
  bool is_complete() { return grammar_ && grammar_->is_complete(); }

  // Makes `ids` the sequence; *kept: tokens of the longest common prefix with what the cache holds, at most all but the last.
  Status set_prompt(std::span<const int32_t> ids, int64_t* kept);

  // Runs up to `max_tokens` (≥ 1) of the prompt; *remaining: how many are left. Logits of the slice's last `logits_rows` tokens are
  // kept, and those of the prompt's last token, unless it is kNoLogits.
  static constexpr int64_t kNoLogits = -1;
  Status prefill(int64_t max_tokens, int64_t logits_rows, int64_t* remaining);

  // Puts `ids` behind the first `length` tokens, in place of what was drawn there and has not been run: as if they had been drawn.
  Status append(int64_t length, std::span<const int32_t> ids);

  // For each session: draws a token, appends it and decodes its text. What must be run for that, they run as one batch; each gives what it gives
  // alone. A token that the grammar forces is not drawn: it is run together with the next that is. The sessions are distinct, of one engine, and
  // kMostAtOnce at the most. Whether a step succeeded, its session tells; one that fails does not touch the others.
  static void step(std::span<Session* const> sessions);
  const Status& stepped() const { return stepped_; }
  int32_t last_token() const { return tokens_.back(); }

  // JSON about the last token and the `top` likeliest in its place; see qw_logprobs.
  Status logprobs(int64_t top, std::string* json);

  std::string_view piece() const { return piece_; }
  void flush();

  // (rows, vocab_size) of the last prefill or step.
  const float* logits() const { return logits_.data(); }

  // The final hidden state of the prompt's last token; null until it was run.
  const float* hidden() const { return has_hidden_ ? hidden_.data() : nullptr; }

  std::span<const int32_t> tokens() const { return tokens_; }
  int64_t length() const { return static_cast<int64_t>(tokens_.size()); }

  // Tokens whose keys and values are in the cache.
  int64_t cached() const { return run_; }

  // Becomes a sequence of `ids` that are in the cache: whoever says so writes its blocks.
  Status restore(std::span<const int32_t> ids);
  uint8_t* cache_block(int64_t block) { return cache_.block(block); }

  bool shares_engine(const Session& other) const { return &forward_ == &other.forward_; }

 private:
  Status check_ids(std::span<const int32_t> ids, const char* whose) const;
  Status add_rows(int64_t count, int64_t wanted_rows, Rows* rows);
  Status finish_run(int64_t count, int64_t logits_rows);
  Status run(int64_t count, int64_t wanted_rows, bool head = true);
  Status keep_hidden(const float* hidden);
  Status forget(Status why);
  Status begin_step(int64_t most_rows, Rows* rows);
  Status take_logits(const float* logits);
  Status finish_step();
  Status draw(int32_t* id);
  void append_logprob(const Logprob& token, std::string* json) const;
  float* last_logits() { return logits_.data() + (logits_rows_ - 1) * config_.vocab_size; }

  const Config& config_;
  int64_t context_length_;
  Forward& forward_;
  KvCache cache_;
  Sampler sampler_;
  std::unique_ptr<GrammarGuide> grammar_;
  const Tokenizer* tokenizer_;
  std::unique_ptr<StreamDecoder> decoder_;
  std::string_view piece_;
  std::vector<int32_t> tokens_;
  int64_t run_ = 0;         // tokens whose keys and values are in the cache
  int64_t prompt_ = 0;      // tokens of the prompt
  Buffer<float> logits_;     // (logits_rows_, vocab_size); of a batch's first session, the others' too
  int64_t logits_rows_ = 0;
  bool has_logits_ = false;  // of the last token, in the last row
  Buffer<float> hidden_;     // (hidden_size)
  bool has_hidden_ = false;
  Status stepped_;
};

}  // namespace qwasm
