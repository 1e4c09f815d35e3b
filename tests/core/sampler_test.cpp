// The sampler: each filter against its definition, ties, and the distribution of the draws.
#include "core/sample/sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>
#include <vector>

namespace qwasm {
namespace {

using Floats = std::vector<float>;

bool all(int32_t) { return true; }

Sampler make(int64_t vocab_size, const SamplingOptions& options) {
  Sampler sampler(vocab_size, all);
  sampler.set(options);
  return sampler;
}

// The ids that 2,000 draws give, with their shares.
std::map<int32_t, double> shares(const Floats& logits, const SamplingOptions& options, const std::vector<int32_t>& sequence = {}) {
  Sampler sampler = make(static_cast<int64_t>(logits.size()), options);
  std::map<int32_t, double> found;
  for (int i = 0; i < 2000; ++i) found[sampler.draw(logits.data(), sequence)] += 1.0 / 2000;
  return found;
}

std::set<int32_t> ids(const std::map<int32_t, double>& shares) {
  std::set<int32_t> found;
  for (const auto& [id, share] : shares) found.insert(id);
  return found;
}

const Floats kLogits = {std::log(0.4f), std::log(0.1f), std::log(0.3f), std::log(0.15f), std::log(0.05f)};

TEST(Greedy, TakesTheLargestLogitAndTheLowestIdOnTies) {
  for (const uint64_t seed : {0, 1, 99}) {
    Sampler sampler = make(5, {.seed = seed});
    EXPECT_EQ(sampler.draw(Floats{1, 3, 2, 3, 0}.data(), {}), 1);
    EXPECT_EQ(sampler.draw(Floats{-1, -3, -2, -1, -1}.data(), {}), 0);
  }
}

TEST(Greedy, HeedsTheRepetitionPenalty) {
  Sampler sampler = make(3, {.repetition_penalty = 2});
  EXPECT_EQ(sampler.draw(Floats{3, 2, 1}.data(), std::vector<int32_t>{0, 0}), 1);   // 3 / 2 < 2, once and not per occurrence
  EXPECT_EQ(sampler.draw(Floats{-1, -1.5, -9}.data(), std::vector<int32_t>{0}), 1);  // -1 · 2 < -1.5
}

TEST(Temperature, SharpensAndFlattensTheDistribution) {
  const auto plain = shares(kLogits, {.temperature = 1});
  for (size_t id = 0; id < kLogits.size(); ++id) EXPECT_NEAR(plain.at(static_cast<int32_t>(id)), std::exp(kLogits[id]), 0.04);
  EXPECT_GT(shares(kLogits, {.temperature = 0.3}).at(0), 0.65);  // 0.4^(1/0.3) / Σ = 0.72
  EXPECT_NEAR(shares(kLogits, {.temperature = 1000}).at(4), 0.2, 0.04);
}

TEST(TopK, KeepsTheKLargestAndTheirEquals) {
  EXPECT_EQ(ids(shares(kLogits, {.temperature = 5, .top_k = 2})), (std::set<int32_t>{0, 2}));
  EXPECT_EQ(ids(shares(kLogits, {.temperature = 5, .top_k = 1})), (std::set<int32_t>{0}));
  EXPECT_EQ(ids(shares(kLogits, {.temperature = 5, .top_k = 0})).size(), 5u);
  EXPECT_EQ(ids(shares(kLogits, {.temperature = 5, .top_k = 50})).size(), 5u);
  EXPECT_EQ(ids(shares({1, 0, 0, -9}, {.temperature = 5, .top_k = 2})), (std::set<int32_t>{0, 1, 2}));
}

TEST(TopP, KeepsTheSmallestSetThatReachesP) {
  EXPECT_EQ(ids(shares(kLogits, {.temperature = 1, .top_p = 0.5})), (std::set<int32_t>{0, 2}));
  EXPECT_EQ(ids(shares(kLogits, {.temperature = 1, .top_p = 0.39})), (std::set<int32_t>{0}));
  EXPECT_EQ(ids(shares(kLogits, {.temperature = 1, .top_p = 0.8})), (std::set<int32_t>{0, 2, 3}));
  EXPECT_EQ(ids(shares(kLogits, {.temperature = 1, .top_p = 0})), (std::set<int32_t>{0}));
  EXPECT_EQ(ids(shares(kLogits, {.temperature = 1, .top_p = 1})).size(), 5u);
}

TEST(TopP, CountsWhatTopKLeft) {
  // Of 0.4 and 0.3 alone, 0.4 has 57 %.
  EXPECT_EQ(ids(shares(kLogits, {.temperature = 1, .top_k = 2, .top_p = 0.55})), (std::set<int32_t>{0}));
}

TEST(MinP, DropsWhatIsLessLikelyThanAShareOfTheLikeliest) {
  EXPECT_EQ(ids(shares(kLogits, {.temperature = 1, .min_p = 0.3})), (std::set<int32_t>{0, 2, 3}));
  EXPECT_EQ(ids(shares(kLogits, {.temperature = 1, .min_p = 1})), (std::set<int32_t>{0}));
}

TEST(Seed, DecidesTheDraws) {
  const auto draws = [](uint64_t seed) {
    Sampler sampler = make(5, {.temperature = 1, .seed = seed});
    std::vector<int32_t> found;
    for (int i = 0; i < 40; ++i) found.push_back(sampler.draw(kLogits.data(), {}));
    return found;
  };
  EXPECT_EQ(draws(3), draws(3));
  EXPECT_NE(draws(3), draws(4));
}

TEST(Allowed, IdsAloneAreDrawn) {
  Sampler sampler(4, [](int32_t id) { return id != 1 && id != 3; });
  sampler.set({.temperature = 100});
  for (int i = 0; i < 200; ++i) EXPECT_EQ(sampler.draw(Floats{0, 50, 0, 90}.data(), {}) % 2, 0);
  sampler.set({});
  EXPECT_EQ(sampler.draw(Floats{0, 50, 1, 90}.data(), {}), 2);
}

}  // namespace
}  // namespace qwasm
