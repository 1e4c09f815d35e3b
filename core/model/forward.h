// The one forward pass: tokens in, logits out, keys and values kept.
#pragma once

#include <cstdint>
#include <span>

#include "core/base/buffer.h"
#include "core/model/config.h"
#include "core/model/kv_cache.h"
#include "core/model/ops.h"
#include "core/model/rope.h"
#include "core/model/weights.h"

namespace qwasm {

class Forward {
 public:
  static constexpr int64_t kMaxTokens = 64;  // of one call

  Forward(const Config& config, const Weights& weights, const Kernels& kernels, ThreadPool& pool)
      : config_(config), weights_(weights), rope_(config.rope, config.head_dim), ops_(config, kernels, pool) {}

  // Memory for activations.
  Status prepare();

  // Runs ids (1 … kMaxTokens of them, each below vocab_size) at positions start, start + 1, …, whose predecessors are in `cache`, and
  // computes the logits of the last `logits_rows` of them: *logits (logits_rows, vocab_size), which grows as needed. After a
  // failure (memory, or a logit that is not finite) the cache must be cleared.
  Status run(KvCache& cache, std::span<const int32_t> ids, int64_t start, int64_t logits_rows, Buffer<float>* logits);

 private:
  void layer(KvCache& cache, const Ops::Place& place);

  const Config& config_;
  const Weights& weights_;
  Rope rope_;
  Ops ops_;

  Buffer<float> hidden_, normed_;      // (tokens, hidden_size)
  Buffer<float> queries_, mixed_;      // (tokens, num_attention_heads · head_dim)
  Buffer<float> gated_;                // (tokens, intermediate_size)
  Buffer<float> cos_, sin_;            // (tokens, head_dim / 2)
};

}  // namespace qwasm
