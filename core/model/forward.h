// The one forward pass: tokens in, logits out, keys and values kept.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/buffer.h"
#include "core/model/config.h"
#include "core/model/kv_cache.h"
#include "core/model/ops.h"
#include "core/model/rope.h"
#include "core/model/weights.h"

namespace qwasm {

class Forward {
 public:
  static constexpr int64_t kMaxTokens = 64;  // of one run

  Forward(const Config& config, const Weights& weights, const Kernels& kernels, ThreadPool& pool)
      : config_(config), weights_(weights), rope_(config.rope, config.head_dim, weights.rope_factors), ops_(config, kernels, pool) {}

  // Memory for activations.
  Status prepare();

  // Runs 1 … kMaxTokens rows, of one sequence or of several: the weights are read once for all, and each row's numbers are those that it
  // has alone. Caches have room for their rows, ids are below vocab_size. *logits (wanted rows, vocab_size) grows as needed; whether they are
  // finite is for check_logits to tell. Null: the head is not run.
  Status run(std::span<const Row> rows, Buffer<float>* logits);

  // Of the last run: what the head reads, (wanted rows, hidden_size).
  const float* final_hidden() const { return normed_.data(); }

  // Fails where one of the logits (vocab_size), or of a final hidden state, at `position` is not finite: then what the sequence's cache holds
  // is of no use.
  Status check_logits(const float* logits, int64_t position) const;
  Status check_hidden(const float* hidden, int64_t position) const;

 private:
  void layer(const Ops::Place& place);

  const Config& config_;
  const Weights& weights_;
  Rope rope_;
  Ops ops_;

  Buffer<float> hidden_, normed_;      // (tokens, hidden_size)
  Buffer<float> queries_, mixed_;      // (tokens, num_attention_heads · head_dim)
  Buffer<float> gated_;                // (tokens, intermediate_size)
  Buffer<float> cos_, sin_;            // (tokens, head_dim / 2)
  std::vector<Range> tiles_;           // of Ops::Place
};

// Rows that are gathered for a run.
struct Rows {
  Row items[Forward::kMaxTokens];
  int64_t count = 0;

  void add(const Row& row) { items[count++] = row; }
  std::span<const Row> span() const { return {items, static_cast<size_t>(count)}; }
};

}  // namespace qwasm
