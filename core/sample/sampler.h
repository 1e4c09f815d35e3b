// From logits to the next token: penalty, temperature, top-k, top-p, min-p and the draw, in the order of Hugging Face's processors.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/base/rng.h"

namespace qwasm {

// The defaults are greedy decoding with everything else off.
struct SamplingOptions {
  double temperature = 0;         // ≥ 0; 0: the largest logit, the lowest id on ties
  int64_t top_k = 0;              // keep the k largest (and their equals); 0: all
  double top_p = 1;               // keep the smallest set of the likeliest whose probabilities reach it, at least one; 1: all
  double min_p = 0;               // drop what is less likely than min_p times the likeliest; 0: none
  double repetition_penalty = 1;  // > 0; logits of tokens already in the sequence are divided by it (negative ones multiplied); 1: off
  uint64_t seed = 0;
};

class Sampler {
 public:
  // `allowed(id)`: whether that id may be drawn (ids of the vocabulary's padding may not); at least one must be.
  Sampler(int64_t vocab_size, std::function<bool(int32_t)> allowed);

  // Also starts the random numbers anew.
  void set(const SamplingOptions& options);

  // Draws from finite logits (vocab_size). `sequence`: all tokens so far, prompt included.
  int32_t draw(const float* logits, std::span<const int32_t> sequence);

 private:
  struct Candidate {
    float logit;
    int32_t id;
  };
  struct Run {  // of ids that follow each other
    int32_t first, count;
  };
  int32_t largest(const float* logits) const;
  void penalize(std::span<const int32_t> sequence);
  void keep_top_k();
  void keep_top_p_and_min_p();

  SamplingOptions options_;
  Rng rng_;
  std::vector<Run> allowed_;      // ascending
  std::vector<Candidate> candidates_;
  std::vector<double> weights_;   // exp(logit - largest), beside candidates_
  std::vector<int32_t> seen_;
};

}  // namespace qwasm
