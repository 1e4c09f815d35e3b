// The sampler: each step against its definition, all of them against transformers and a plain twin, ties, and the distribution of the draws.
#include "core/sample/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <vector>

#include "core/sample/logprobs.h"
#include "tests/core/capi_support.h"

namespace qwasm {
namespace {

using Floats = std::vector<float>;

bool all(int32_t) { return true; }

Sampler make(int64_t vocab_size, const SamplingOptions& options) {
  Sampler sampler(vocab_size, all);
  sampler.set(options);
  return sampler;
}

int32_t draw(Sampler& sampler, Floats logits, const std::vector<int32_t>& sequence = {}, int64_t prompt_length = 0) {
  return sampler.draw(logits.data(), sequence, prompt_length);
}

// The ids that many draws give, with their shares.
std::map<int32_t, double> shares(Floats logits, const SamplingOptions& options, const std::vector<int32_t>& sequence = {}, int64_t prompt_length = 0,
                                 int draws = 2000) {
  Sampler sampler = make(static_cast<int64_t>(logits.size()), options);
  std::map<int32_t, double> found;
  for (int i = 0; i < draws; ++i) found[sampler.draw(logits.data(), sequence, prompt_length)] += 1.0 / draws;
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
    EXPECT_EQ(draw(sampler, Floats{1, 3, 2, 3, 0}), 1);
    EXPECT_EQ(draw(sampler, Floats{-1, -3, -2, -1, -1}), 0);
  }
}

TEST(Greedy, HeedsTheRepetitionPenalty) {
  Sampler sampler = make(3, {.repetition_penalty = 2});
  EXPECT_EQ(draw(sampler, Floats{3, 2, 1}, {0, 0}), 1);   // 3 / 2 < 2, once and not per occurrence
  EXPECT_EQ(draw(sampler, Floats{-1, -1.5, -9}, {0}), 1);  // -1 · 2 < -1.5
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
    for (int i = 0; i < 40; ++i) found.push_back(draw(sampler, kLogits));
    return found;
  };
  EXPECT_EQ(draws(3), draws(3));
  EXPECT_NE(draws(3), draws(4));
}

TEST(Allowed, IdsAloneAreDrawn) {
  Sampler sampler(4, [](int32_t id) { return id != 1 && id != 3; });
  sampler.set({.temperature = 100});
  for (int i = 0; i < 200; ++i) EXPECT_EQ(draw(sampler, Floats{0, 50, 0, 90}) % 2, 0);
  sampler.set({});
  EXPECT_EQ(draw(sampler, Floats{0, 50, 1, 90}), 2);
}

// ---- bias and penalties

TEST(LogitBias, IsAddedToTheLogitsOfItsIds) {
  Sampler sampler = make(4, {.logit_bias = {{2, 1.5f}, {0, -100}}});
  EXPECT_EQ(draw(sampler, {9, 2, 1, 0}), 2);  // 1 + 1.5 > 2, and 9 - 100 < 0
  const auto found = shares(kLogits, {.temperature = 1, .logit_bias = {{4, std::log(8.0f)}}});
  EXPECT_NEAR(found.at(4), 0.4 / 1.35, 0.04);
  EXPECT_NEAR(found.at(0), 0.4 / 1.35, 0.04);
}

TEST(PresencePenalty, IsSubtractedOnceFromWhatWasGenerated) {
  Sampler sampler = make(3, {.presence_penalty = 1.5});
  EXPECT_EQ(draw(sampler, {3, 2, 1}, {0, 0, 1}, 3), 0) << "the prompt does not count";
  EXPECT_EQ(draw(sampler, {3, 2, 1}, {0, 1, 0}, 2), 1) << "3 - 1.5 < 2";
  EXPECT_EQ(draw(sampler, {3, 1.4, 1}, {0, 0, 0}, 0), 0) << "3 - 1.5 > 1.4, however often it was generated";
}

TEST(FrequencyPenalty, IsSubtractedAsOftenAsATokenWasGenerated) {
  Sampler sampler = make(3, {.frequency_penalty = 0.75});
  EXPECT_EQ(draw(sampler, {3, 2, 1}, {0, 0, 0}, 2), 0) << "3 - 0.75 > 2";
  EXPECT_EQ(draw(sampler, {3, 2, 1}, {0, 0, 0}, 1), 1) << "3 - 1.5 < 2";
  sampler.set({.frequency_penalty = -2});
  EXPECT_EQ(draw(sampler, {3, 2, 1}, {2, 2}, 0), 2) << "1 + 4 > 3";
}

TEST(Order, IsBiasThenRepetitionThenPresence) {
  Sampler sampler = make(2, {.repetition_penalty = 2, .logit_bias = {{0, 1}}});
  EXPECT_EQ(draw(sampler, {1, 1.2f}, {0}, 1), 1) << "(1 + 1) / 2 < 1.2, whereas 1 / 2 + 1 is more";
  sampler.set({.repetition_penalty = 2, .presence_penalty = 1});
  EXPECT_EQ(draw(sampler, {4, 1.2f}, {0}, 0), 1) << "4 / 2 - 1 < 1.2, whereas (4 - 1) / 2 is more";
}

TEST(Logits, AreTheSameAfterADraw) {
  Sampler sampler = make(5, {.temperature = 1, .top_k = 3, .top_p = 0.9, .min_p = 0.1, .repetition_penalty = 1.7, .presence_penalty = 0.3,
                             .frequency_penalty = 0.1, .logit_bias = {{1, 3}, {4, -3}}});
  Floats logits = kLogits;
  for (int i = 0; i < 20; ++i) sampler.draw(logits.data(), std::vector<int32_t>{4, 1, 1, 0, 4}, 2);
  EXPECT_EQ(std::memcmp(logits.data(), kLogits.data(), sizeof(float) * logits.size()), 0);
}

TEST(Logits, StayFiniteWhateverIsDoneToThem) {
  Sampler sampler = make(3, {.temperature = 1, .top_p = 0.5, .repetition_penalty = 1e-6});
  EXPECT_EQ(draw(sampler, {1e38f, 3e38f, 0}, {0, 1}, 0), 0) << "two equals, of which top_p keeps the first";
}

// ---- the mask

const std::vector<SamplingOptions> kEveryPath = {
    {},
    {.repetition_penalty = 1.1},
    {.temperature = 100},
    {.temperature = 100, .top_k = 3},
    {.temperature = 100, .top_p = 0.99},
    {.temperature = 100, .top_k = 50, .top_p = 0.99, .min_p = 0.01, .presence_penalty = 1, .logit_bias = {{3, 100}}},
};

TEST(Mask, LeavesAllowedIdsAlone) {
  std::mt19937 random(1);
  for (const SamplingOptions& options : kEveryPath) {
    Sampler sampler(100, [](int32_t id) { return id < 90; });
    sampler.set(options);
    for (int i = 0; i < 200; ++i) {
      Floats logits(100);
      for (float& logit : logits) logit = static_cast<float>(random() % 1000) / 100;
      uint32_t mask[4];
      for (uint32_t& word : mask) word = random() & random() & random();
      mask[2] |= 1u << 25;  // id 89
      const int32_t id = sampler.draw(logits.data(), std::vector<int32_t>{1, 2, 99}, 1, mask);
      ASSERT_TRUE(id >= 0 && id < 90);
      EXPECT_TRUE(mask[id / 32] >> id % 32 & 1) << id;
    }
  }
}

TEST(Mask, ThatAllowsNothingGivesNothing) {
  for (const SamplingOptions& options : kEveryPath) {
    Sampler sampler(40, [](int32_t id) { return id < 35; });
    sampler.set(options);
    Floats logits(40, 1);
    const uint32_t none[2] = {}, padding[2] = {0, 1u << 6};
    EXPECT_EQ(sampler.draw(logits.data(), std::vector<int32_t>{1}, 0, none), -1);
    EXPECT_EQ(sampler.draw(logits.data(), std::vector<int32_t>{1}, 0, padding), -1) << "38 has no token";
    EXPECT_GE(sampler.draw(logits.data(), std::vector<int32_t>{1}, 0), 0) << "and the next draw is right";
  }
}

TEST(Mask, TakesTheLargestLogitThatItAllows) {
  Sampler sampler = make(70, {});
  Floats logits(70);
  std::iota(logits.begin(), logits.end(), 0.0f);
  logits[40] = logits[64];
  const uint32_t mask[3] = {0xffffffff, 1u << 8, 1};
  EXPECT_EQ(sampler.draw(logits.data(), {}, 0, mask), 40) << "the first of 40 and 64";
}

// ---- everything together

// What the draw is by its definition: all in double, sorted, and one random number that walks over the ids.
class Twin {
 public:
  explicit Twin(const SamplingOptions& options) : options_(options), rng_(options.seed) {}

  int32_t draw(const Floats& raw, const std::vector<int32_t>& sequence, size_t prompt_length) {
    std::vector<std::pair<double, int32_t>> kept = sorted(adjusted(raw, sequence, prompt_length));
    if (options_.temperature == 0) return kept[0].second;
    if (options_.top_k > 0 && static_cast<size_t>(options_.top_k) < kept.size()) {
      const double least = kept[static_cast<size_t>(options_.top_k) - 1].first;
      std::erase_if(kept, [&](const auto& entry) { return entry.first < least; });
    }
    std::map<int32_t, double> weights;
    const double all = sum_of(kept), largest = kept[0].first;
    double before = 0;
    for (const auto& [logit, id] : kept) {
      const double weight = std::exp((logit - largest) / options_.temperature);
      if (!weights.empty() && (before >= options_.top_p * all || weight < options_.min_p)) break;
      weights[id] = weight;
      before += weight;
    }
    double left = rng_.uniform() * before;
    for (const auto& [id, weight] : weights) {
      if ((left -= weight) < 0) return id;
    }
    return weights.rbegin()->first;
  }

 private:
  Floats adjusted(Floats logits, const std::vector<int32_t>& sequence, size_t prompt_length) const {
    for (const auto& [id, bias] : options_.logit_bias) logits[static_cast<size_t>(id)] += bias;
    for (const int32_t id : std::set<int32_t>(sequence.begin(), sequence.end())) {
      float& logit = logits[static_cast<size_t>(id)];
      const auto penalty = static_cast<float>(options_.repetition_penalty);
      logit = logit < 0 ? logit * penalty : logit / penalty;
    }
    std::map<int32_t, int> generated;
    for (size_t i = prompt_length; i < sequence.size(); ++i) ++generated[sequence[i]];
    for (const auto& [id, count] : generated) {
      float& logit = logits[static_cast<size_t>(id)];
      logit = static_cast<float>(logit - (options_.presence_penalty + count * options_.frequency_penalty));
    }
    return logits;
  }

  static std::vector<std::pair<double, int32_t>> sorted(const Floats& logits) {
    std::vector<std::pair<double, int32_t>> entries;
    for (const float logit : logits) entries.emplace_back(logit, static_cast<int32_t>(entries.size()));
    std::stable_sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
    return entries;
  }

  double sum_of(const std::vector<std::pair<double, int32_t>>& kept) const {
    double sum = 0;
    for (const auto& [logit, id] : kept) sum += std::exp((logit - kept[0].first) / options_.temperature);
    return sum;
  }

  SamplingOptions options_;
  Rng rng_;
};

SamplingOptions random_options(std::mt19937& random, int32_t vocab_size) {
  const auto one_of = [&](std::initializer_list<double> choices) { return choices.begin()[random() % choices.size()]; };
  SamplingOptions options = {.temperature = one_of({0, 0.2, 0.7, 1, 1, 1.5, 5, 1000}),
                             .top_k = static_cast<int64_t>(one_of({0, 0, 1, 5, 40, 1000, 1e6})),
                             .top_p = one_of({1, 1, 0, 0.1, 0.5, 0.9, 0.95, 0.999}),
                             .min_p = one_of({0, 0, 0, 0.01, 0.1, 1}),
                             .repetition_penalty = one_of({1, 1.1, 2, 0.9}),
                             .presence_penalty = one_of({0, 1, -2}),
                             .frequency_penalty = one_of({0, 0.5, -0.3}),
                             .seed = random()};
  for (int i = 0; i < 3; ++i) options.logit_bias.emplace_back(random() % (vocab_size / 3) + i * (vocab_size / 3), one_of({-100, -1, 2, 12}));
  return options;
}

TEST(Draws, AreThoseOfAPlainTwin) {
  constexpr int32_t kVocab = 3000;
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  for (int round = 0; round < 300; ++round) {
    const float spread = static_cast<float>(1 + random() % 6);
    Floats logits(kVocab);
    for (float& logit : logits) logit = std::round(normal(random) * spread * 64) / 64;  // some are equal
    std::vector<int32_t> sequence(50);
    for (int32_t& id : sequence) id = static_cast<int32_t>(random() % (round % 2 ? 20 : kVocab));
    const SamplingOptions options = random_options(random, kVocab);
    Sampler sampler = make(kVocab, options);
    Twin twin(options);
    for (int i = 0; i < 10; ++i) ASSERT_EQ(sampler.draw(logits.data(), sequence, 20), twin.draw(logits, sequence, 20)) << round;
  }
}

TEST(Draws, HaveTheDistributionOfTransformersProcessors) {
  const auto golden = capi_test::read_json("tests/golden/sampling.json");
  ASSERT_GE(golden["cases"].size(), 12u);
  for (const auto& one : golden["cases"]) {
    const auto& given = one["options"];
    SamplingOptions options = {.temperature = given.value("temperature", 1.0),
                               .top_k = given.value("top_k", 0),
                               .top_p = given.value("top_p", 1.0),
                               .min_p = given.value("min_p", 0.0),
                               .repetition_penalty = given.value("repetition_penalty", 1.0),
                               .seed = 11};
    if (given.contains("sequence_bias")) {
      for (const auto& [id, bias] : given["sequence_bias"].items()) options.logit_bias.emplace_back(std::stoi(id), bias.template get<float>());
    }
    const auto found = shares(one["logits"], options, one["sequence"], 0, 20'000);
    std::set<int32_t> expected;
    for (const auto& [id, probability] : one["probabilities"].items()) {
      expected.insert(std::stoi(id));
      EXPECT_NEAR(found.contains(std::stoi(id)) ? found.at(std::stoi(id)) : 0, probability.template get<double>(), 0.015) << one["name"] << " " << id;
    }
    EXPECT_EQ(ids(found), expected) << one["name"];
  }
}

// ---- log-probabilities

TEST(Logprobs, AreTheLogarithmsOfTheSoftmax) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  for (const int32_t size : {1, 2, 3, 7, 1000, 5001}) {
    Floats logits(static_cast<size_t>(size));
    for (float& logit : logits) logit = normal(random) * 8;
    const long double largest = *std::max_element(logits.begin(), logits.end());
    long double sum = 0;
    for (const float logit : logits) sum += std::exp(logit - largest);
    const int32_t chosen = size / 2;
    const auto found = log_probabilities(logits, chosen, 20);
    ASSERT_EQ(found.size(), 1u + static_cast<size_t>(std::min(size, 20)));
    EXPECT_EQ(found[0].id, chosen);
    for (const Logprob& token : found) {
      const auto right = static_cast<float>(logits[static_cast<size_t>(token.id)] - largest - std::log(sum));
      EXPECT_NEAR(token.logprob, right, 1e-7 * std::max(1.0f, std::fabs(right))) << size;
    }
    for (size_t i = 2; i < found.size(); ++i) EXPECT_GE(found[i - 1].logprob, found[i].logprob);
    EXPECT_EQ(found[1].id, std::max_element(logits.begin(), logits.end()) - logits.begin());
  }
}

TEST(Logprobs, PutTheLowerIdFirstAmongEquals) {
  std::vector<int32_t> order;
  for (const Logprob& token : log_probabilities(Floats{1, 2, 1, 2, 1, 0, 2}, 5, 5)) order.push_back(token.id);
  EXPECT_EQ(order, (std::vector<int32_t>{5, 1, 3, 6, 0, 2}));
}

TEST(Logprobs, OfACertainTokenIsZero) {
  const auto found = log_probabilities(Floats{900, 0, -900}, 0, 0);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(std::bit_cast<uint32_t>(found[0].logprob), 0u);
  EXPECT_EQ(log_probabilities(Floats{900, 0, -900}, 2, 0)[0].logprob, -1800);
}

}  // namespace
}  // namespace qwasm
