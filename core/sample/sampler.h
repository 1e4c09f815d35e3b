// From logits to the next token: bias, penalties, mask, temperature, top-k, top-p, min-p and the draw, in the order of Hugging Face's processors.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "core/base/rng.h"

namespace qwasm {

// The defaults are greedy decoding with everything else off. They act in this order, which is that of transformers' _get_logits_processor:
// logit_bias (there sequence_bias, first of all), repetition_penalty, presence_penalty and frequency_penalty (which transformers does not
// have; with vLLM they follow the other penalty, so that what they subtract is not scaled), the mask (prefix_allowed_tokens_fn),
// temperature, top_k, top_p, min_p.
struct SamplingOptions {
  double temperature = 0;         // ≥ 0; 0: the largest logit, the lowest id on ties
  int64_t top_k = 0;              // keep the k largest (and their equals); 0: all
  double top_p = 1;               // keep the smallest set of the likeliest whose probabilities reach it, at least one; 1: all
  double min_p = 0;               // drop what is less likely than min_p times the likeliest; 0: none
  double repetition_penalty = 1;  // > 0; logits of tokens already in the sequence are divided by it (negative ones multiplied); 1: off
  double presence_penalty = 0;    // subtracted from the logits of tokens that were generated
  double frequency_penalty = 0;   // … as often as they were
  std::vector<std::pair<int32_t, float>> logit_bias = {};  // (id, what is added to its logit), ids distinct and of the vocabulary
  uint64_t seed = 0;
};

class Sampler {
 public:
  // `allowed(id)`: whether that id may be drawn (ids of the vocabulary's padding may not); at least one must be.
  Sampler(int64_t vocab_size, std::function<bool(int32_t)> allowed);

  // Also starts the random numbers anew.
  void set(SamplingOptions options);

  // Draws from finite logits (vocab_size), which are changed in between and the same afterwards. `sequence`: all tokens so far, of which the
  // first `prompt_length` were not generated. `mask`: null, or a bit for each id, bit id % 32 of word id / 32: whether it may be drawn.
  // -1 where no id may.
  int32_t draw(float* logits, std::span<const int32_t> sequence, int64_t prompt_length, const uint32_t* mask = nullptr);

 private:
  struct Candidate {
    float logit;
    int32_t id;
  };
  struct Run {  // of ids that follow each other
    int32_t first, count;
  };
  void adjust(float* logits, std::span<const int32_t> sequence, int64_t prompt_length);
  template <typename Use>
  void for_each_distinct(std::span<const int32_t> ids, Use use);
  template <typename Use>
  void for_each_allowed(const uint32_t* mask, Use use) const;
  int32_t largest(const float* logits, const uint32_t* mask) const;
  int32_t sample(const float* logits, const uint32_t* mask, float largest);
  float kth_largest(const float* logits, const uint32_t* mask);
  Candidate last_of_top_p(int64_t total) const;
  int64_t drop_after(const Candidate& last);

  int64_t vocab_size_;
  SamplingOptions options_;
  Rng rng_;
  std::vector<Run> allowed_;           // ascending
  std::vector<Candidate> changed_;     // logits before they were changed, in that order
  std::vector<int32_t> counts_;        // by id; zero between calls
  std::vector<float> top_;             // what kth_largest has found so far
  std::vector<Candidate> candidates_;  // ascending ids
  std::vector<int64_t> weights_;       // beside candidates_: e^((logit - largest) / temperature)
};

}  // namespace qwasm
