// inv_freq of default RoPE (Su et al. 2021), of YaRN (Peng et al. 2023, section 3.4) and of Llama 3, as transformers' modeling_rope_utils has them.
#include "core/model/rope.h"

#include <algorithm>
#include <cmath>

#include "core/base/math.h"

namespace qwasm {

namespace {

constexpr double kTwoPi = 6.283185307179586;

// The dimension whose wave turns `rotations` times within `positions`.
double correction_dim(double rotations, double dim, const RopeParameters& p) {
  return dim * log_f64(static_cast<double>(p.original_max_position_embeddings) / (rotations * kTwoPi)) / (2 * log_f64(p.rope_theta));
}

// Waves longer than the original context allows for are stretched by `factor`, short ones stay, and between the two is a mean that slides.
// float32 throughout, as in transformers.
float llama3_frequency(const RopeParameters& p, float inv_freq) {
  const double original = static_cast<double>(p.original_max_position_embeddings);
  const auto factor = static_cast<float>(p.factor), low = static_cast<float>(p.low_freq_factor);
  const float wavelength = 1.0f / inv_freq * static_cast<float>(kTwoPi);
  if (wavelength > static_cast<float>(original / p.low_freq_factor)) return inv_freq / factor;
  if (wavelength < static_cast<float>(original / p.high_freq_factor)) return inv_freq;
  const float smooth = (1.0f / wavelength * static_cast<float>(original) - low) / static_cast<float>(p.high_freq_factor - p.low_freq_factor);
  return (1.0f - smooth) * inv_freq / factor + smooth * inv_freq;
}

double mscale_of(double scale, double mscale) { return scale <= 1 ? 1.0 : 0.1 * mscale * log_f64(scale) + 1.0; }

float yarn_attention_factor(const RopeParameters& p) {
  if (p.attention_factor > 0) return static_cast<float>(p.attention_factor);
  if (p.mscale > 0 && p.mscale_all_dim > 0) return static_cast<float>(mscale_of(p.factor, p.mscale) / mscale_of(p.factor, p.mscale_all_dim));
  return static_cast<float>(mscale_of(p.factor, 1));
}

// Waves that turn often keep their frequency, slow ones are stretched by `factor`, and a ramp lies between.
// pos_freqs (head_dim / 2) = rope_theta^(2i / head_dim).
std::vector<float> yarn_frequencies(const RopeParameters& p, const std::vector<float>& pos_freqs) {
  const auto dim = static_cast<double>(pos_freqs.size() * 2);
  double low = correction_dim(p.beta_fast, dim, p), high = correction_dim(p.beta_slow, dim, p);
  if (p.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, dim - 1);
  if (low == high) high += 0.001;
  std::vector<float> inv_freq(pos_freqs.size());
  for (size_t i = 0; i < inv_freq.size(); ++i) {
    const float ramp = std::clamp((static_cast<float>(i) - static_cast<float>(low)) / static_cast<float>(high - low), 0.0f, 1.0f);
    const float extrapolation = 1.0f - ramp;
    const float stretched = 1.0f / (static_cast<float>(p.factor) * pos_freqs[i]);
    inv_freq[i] = stretched * (1.0f - extrapolation) + 1.0f / pos_freqs[i] * extrapolation;
  }
  return inv_freq;
}

}  // namespace

Rope::Rope(const RopeParameters& parameters, int64_t head_dim, const float* factors) : inv_freq_(static_cast<size_t>(head_dim / 2)) {
  std::vector<float> pos_freqs(inv_freq_.size());
  for (size_t i = 0; i < pos_freqs.size(); ++i) {
    const float exponent = static_cast<float>(2 * i) / static_cast<float>(head_dim);
    pos_freqs[i] = static_cast<float>(pow_f64(parameters.rope_theta, exponent));
    inv_freq_[i] = 1.0f / pos_freqs[i];
  }
  if (parameters.rope_type == RopeParameters::Type::kYarn) {
    inv_freq_ = yarn_frequencies(parameters, pos_freqs);
    attention_factor_ = yarn_attention_factor(parameters);
  }
  if (parameters.rope_type == RopeParameters::Type::kLlama3) {
    for (float& inv_freq : inv_freq_) inv_freq = llama3_frequency(parameters, inv_freq);
  }
  for (size_t i = 0; factors && i < inv_freq_.size(); ++i) inv_freq_[i] /= factors[i];
}

void Rope::angles(int64_t position, float* cos, float* sin) const {
  for (size_t i = 0; i < inv_freq_.size(); ++i) {
    const SinCos turned = sincos_f64(static_cast<float>(position) * inv_freq_[i]);
    cos[i] = static_cast<float>(turned.cos) * attention_factor_;
    sin[i] = static_cast<float>(turned.sin) * attention_factor_;
  }
}

}  // namespace qwasm
