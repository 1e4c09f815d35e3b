// One sequence of tokens in time: prompt, prefill by slices, steps. It keeps what its KV cache already holds.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/model/forward.h"
#include "core/sample/sampler.h"
#include "core/text/stream_decoder.h"

namespace qwasm {

class Session {
 public:
  // `forward` is shared by the sessions of an engine, which run one after the other; `tokenizer` may be null.
  Session(const Config& config, CacheFormat cache_format, int64_t context_length, Forward& forward, const Tokenizer* tokenizer);

  void set_sampling(const SamplingOptions& options) { sampler_.set(options); }

  // Makes `ids` the sequence; *kept: tokens of the longest common prefix with what the cache holds, at most all but the last.
  Status set_prompt(std::span<const int32_t> ids, int64_t* kept);

  // Runs up to `max_tokens` (≥ 1) of the prompt; *remaining: how many are left. Logits of the slice's last `logits_rows` tokens are
  // kept, and in any case those of the prompt's last token.
  Status prefill(int64_t max_tokens, int64_t logits_rows, int64_t* remaining);

  // Draws a token, appends it and decodes its text.
  Status step(int32_t* id);

  std::string_view piece() const { return piece_; }
  void flush();

  // (rows, vocab_size) of the last prefill or step.
  const float* logits() const { return logits_.data(); }
  int64_t length() const { return static_cast<int64_t>(tokens_.size()); }

 private:
  Status run(int64_t count, int64_t logits_rows);

  const Config& config_;
  int64_t context_length_;
  Forward& forward_;
  KvCache cache_;
  Sampler sampler_;
  std::unique_ptr<StreamDecoder> decoder_;
  std::string_view piece_;
  std::vector<int32_t> tokens_;
  int64_t run_ = 0;         // tokens whose keys and values are in the cache
  int64_t prompt_ = 0;      // tokens of the prompt
  Buffer<float> logits_;     // (logits_rows_, vocab_size)
  int64_t logits_rows_ = 0;
  bool has_logits_ = false;  // of the last token, in the last row
};

}  // namespace qwasm
