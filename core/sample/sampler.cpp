// Draws the next token.
#include "core/sample/sampler.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <numeric>
#include <utility>

#include "core/base/math.h"

namespace qwasm {

namespace {

// Weights are whole numbers, so that their sums are exact in any order: 2^38 for the likeliest token, and 2^24 of them stay below 2^63.
constexpr int kWeightBits = 38;
constexpr double kLargestWeight = 0x1p38;
// Tokens whose weight rounds to 0: e^-28 · 2^38 = 0.19.
constexpr double kNegligible = -28;

int64_t to_weight(double x) { return std::bit_cast<int64_t>(exp_not_above_1(x) * kLargestWeight + 0x1p52) - std::bit_cast<int64_t>(0x1p52); }

// Weights within 0.8 % of each other share a bucket: one for each 128th of a power of two.
constexpr int kBucketBits = 7;
constexpr size_t kBuckets = (kWeightBits << kBucketBits) + 1;
size_t bucket_of(int64_t weight) {
  return (std::bit_cast<uint64_t>(static_cast<double>(weight | 1)) >> (52 - kBucketBits)) - (1023 << kBucketBits);
}

// The largest of count ≥ 1 numbers; eight at a time without branches, so that it vectorizes: 0.5 ms less a token of Qwen3's vocabulary.
float highest(const float* x, int64_t count) {
  float lanes[8];
  for (float& lane : lanes) lane = x[0];
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    for (int j = 0; j < 8; ++j) lanes[j] = lanes[j] < x[i + j] ? x[i + j] : lanes[j];
  }
  for (; i < count; ++i) lanes[0] = lanes[0] < x[i] ? x[i] : lanes[0];
  return *std::max_element(lanes, lanes + 8);
}

}  // namespace

Sampler::Sampler(int64_t vocab_size, std::function<bool(int32_t)> allowed) : vocab_size_(vocab_size) {
  for (int32_t id = 0; id < vocab_size; ++id) {
    if (!allowed(id)) continue;
    if (allowed_.empty() || allowed_.back().first + allowed_.back().count != id) allowed_.push_back({id, 0});
    ++allowed_.back().count;
  }
}

void Sampler::set(SamplingOptions options) {
  options_ = std::move(options);
  rng_ = Rng(options_.seed);
}

// use(id, how often it occurs), for each distinct id. A table costs 20 µs for 4,000 ids, sorting them 200.
template <typename Use>
void Sampler::for_each_distinct(std::span<const int32_t> ids, Use use) {
  counts_.resize(static_cast<size_t>(vocab_size_));
  for (const int32_t id : ids) ++counts_[id];
  for (const int32_t id : ids) {
    if (counts_[id] > 0) use(id, std::exchange(counts_[id], 0));
  }
}

template <typename Use>
void Sampler::for_each_allowed(const uint32_t* mask, Use use) const {
  for (const Run& run : allowed_) {
    const int32_t end = run.first + run.count;
    for (int32_t id = run.first; !mask && id < end; ++id) use(id);
    for (int32_t word = run.first / 32; mask && word * 32 < end; ++word) {
      for (uint32_t bits = mask[word]; bits != 0; bits &= bits - 1) {
        if (const int32_t id = word * 32 + std::countr_zero(bits); id >= run.first && id < end) use(id);
      }
    }
  }
}

// Bias and penalties touch few tokens of many, so they change those in place and note what was there.
void Sampler::adjust(float* logits, std::span<const int32_t> sequence, int64_t prompt_length) {
  constexpr double kMost = std::numeric_limits<float>::max();
  const auto change = [&](int32_t id, double value) {
    changed_.push_back({logits[id], id});
    logits[id] = static_cast<float>(std::clamp(value, -kMost, kMost));
  };
  for (const auto& [id, bias] : options_.logit_bias) change(id, logits[id] + bias);
  if (options_.repetition_penalty != 1) {  // Keskar et al. 2019 (CTRL), section 4.1: once for each distinct token of the sequence
    const auto penalty = static_cast<float>(options_.repetition_penalty);
    for_each_distinct(sequence, [&](int32_t id, int32_t) { change(id, logits[id] < 0 ? logits[id] * penalty : logits[id] / penalty); });
  }
  if (options_.presence_penalty != 0 || options_.frequency_penalty != 0) {
    for_each_distinct(sequence.subspan(static_cast<size_t>(prompt_length)), [&](int32_t id, int32_t count) {
      change(id, logits[id] - (options_.presence_penalty + count * options_.frequency_penalty));
    });
  }
}

// The first of the largest; -1 where no id is allowed.
int32_t Sampler::largest(const float* logits, const uint32_t* mask) const {
  if (mask) {
    int32_t best = -1;
    float best_logit = -std::numeric_limits<float>::infinity();
    for_each_allowed(mask, [&](int32_t id) {
      if (logits[id] > best_logit) best_logit = logits[best = id];
    });
    return best;
  }
  const Run* best = nullptr;
  float best_logit = 0;
  for (const Run& run : allowed_) {
    const float logit = highest(logits + run.first, run.count);
    if (best && logit <= best_logit) continue;
    best = &run;
    best_logit = logit;
  }
  return best->first + static_cast<int32_t>(std::find(logits + best->first, logits + best->first + best->count, best_logit) - (logits + best->first));
}

// The top_k-th largest logit; -infinity where there are fewer. Once some were seen, nearly all others are too small to be looked at twice.
float Sampler::kth_largest(const float* logits, const uint32_t* mask) {
  constexpr size_t kSpare = 1024;
  const auto k = static_cast<size_t>(options_.top_k);
  float least = -std::numeric_limits<float>::infinity();
  const auto shorten = [&] {
    if (top_.size() < k) return;
    std::nth_element(top_.begin(), top_.begin() + static_cast<std::ptrdiff_t>(k - 1), top_.end(), std::greater<float>());
    least = top_[k - 1];
    top_.resize(k);
  };
  top_.clear();
  for_each_allowed(mask, [&](int32_t id) {
    if (!(logits[id] > least)) return;
    top_.push_back(logits[id]);
    if (top_.size() == 2 * k + kSpare) shorten();
  });
  shorten();
  return least;
}

// The last that top_p keeps of the candidates, by falling logits and, among equals, rising ids. Only those of one bucket need be put in order.
Sampler::Candidate Sampler::last_of_top_p(int64_t total) const {
  std::array<int64_t, kBuckets> sums{};
  for (const int64_t weight : weights_) sums[bucket_of(weight)] += weight;
  const double enough = options_.top_p * static_cast<double>(total);
  size_t bucket = kBuckets - 1;  // here is the likeliest
  int64_t before = 0;
  while (bucket > 0 && static_cast<double>(before + sums[bucket]) < enough) before += sums[bucket--];
  std::vector<std::pair<Candidate, int64_t>> near;
  for (size_t i = 0; i < weights_.size(); ++i) {
    if (bucket_of(weights_[i]) == bucket) near.emplace_back(candidates_[i], weights_[i]);
  }
  const auto later = [](const auto& a, const auto& b) {
    return a.first.logit != b.first.logit ? a.first.logit < b.first.logit : a.first.id > b.first.id;
  };
  std::make_heap(near.begin(), near.end(), later);
  for (auto end = near.end();;) {
    std::pop_heap(near.begin(), end--, later);
    before += end->second;
    if (end == near.begin() || static_cast<double>(before) >= enough) return end->first;
  }
}

// Gives weight 0 to what comes after `last` and to what min_p forbids; returns the sum of the others.
int64_t Sampler::drop_after(const Candidate& last) {
  const auto least = static_cast<int64_t>(options_.min_p * kLargestWeight);
  int64_t total = 0;
  for (size_t i = 0; i < candidates_.size(); ++i) {
    const Candidate& candidate = candidates_[i];
    const bool before = candidate.logit > last.logit || (candidate.logit == last.logit && candidate.id <= last.id);
    weights_[i] = before && weights_[i] >= least ? weights_[i] : 0;
    total += weights_[i];
  }
  return total;
}

int32_t Sampler::sample(const float* logits, const uint32_t* mask, float largest) {
  auto least = static_cast<float>(largest + kNegligible * options_.temperature);
  if (options_.top_k > 0) least = std::max(least, kth_largest(logits, mask));
  candidates_.clear();
  for_each_allowed(mask, [&](int32_t id) {
    if (logits[id] >= least) candidates_.push_back({logits[id], id});
  });
  weights_.resize(candidates_.size());
  for (size_t i = 0; i < candidates_.size(); ++i) {
    weights_[i] = to_weight((static_cast<double>(candidates_[i].logit) - largest) / options_.temperature);
  }
  int64_t total = std::accumulate(weights_.begin(), weights_.end(), int64_t{0});
  if (options_.top_p < 1) {
    total = drop_after(last_of_top_p(total));
  } else if (options_.min_p > 0) {
    total = drop_after({-std::numeric_limits<float>::infinity(), 0});
  }
  int64_t left = std::min(static_cast<int64_t>(rng_.uniform() * static_cast<double>(total)), total - 1);
  size_t i = 0;
  while (left >= weights_[i]) left -= weights_[i++];
  return candidates_[i].id;
}

int32_t Sampler::draw(float* logits, std::span<const int32_t> sequence, int64_t prompt_length, const uint32_t* mask) {
  adjust(logits, sequence, prompt_length);
  int32_t id = largest(logits, mask);
  if (id >= 0 && options_.temperature > 0) id = sample(logits, mask, logits[id]);
  for (; !changed_.empty(); changed_.pop_back()) logits[changed_.back().id] = changed_.back().logit;
  return id;
}

}  // namespace qwasm
