// Rotary position embedding: the angles of a position, computed the way Hugging Face does.
#pragma once

#include <cstdint>
#include <vector>

#include "core/model/config.h"

namespace qwasm {

class Rope {
 public:
  // `factors` (head_dim / 2) divide inv_freq; null: none.
  Rope(const RopeParameters& parameters, int64_t head_dim, const float* factors);

  // cos and sin (head_dim / 2 each) of position · inv_freq[i], times the attention factor. The product is rounded to float32 before
  // cos and sin, as in transformers: with exact products the logits differ from it by 6e-5 at position 4,000.
  void angles(int64_t position, float* cos, float* sin) const;

  const std::vector<float>& inv_freq() const { return inv_freq_; }

 private:
  std::vector<float> inv_freq_;  // (head_dim / 2)
  float attention_factor_ = 1;
};

}  // namespace qwasm
