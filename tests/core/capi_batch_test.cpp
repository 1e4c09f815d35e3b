// Several sequences through the C ABI: batches give what each gives alone, and what is in one cache can be taken over by another.
#include <array>
#include <random>

#include "tests/core/small_model.h"

namespace qwasm::capi_test {
namespace {

Ids prompt_of(std::mt19937& random, int count) {
  Ids ids;
  for (int i = 0; i < count; ++i) ids.push_back(static_cast<int32_t>(random() % 380));
  return ids;
}

Floats last_logits(const Sequence& sequence) { return Floats(qw_logits(sequence.get()), qw_logits(sequence.get()) + sequence.vocab()); }

// One sequence of a batch, and what it gave.
struct Course {
  std::string sampling;
  Ids prompt, drawn;
  std::vector<Floats> logits;  // that each was drawn from
};

void set_sampling(const Sequence& sequence, const Course& course) {
  EXPECT_EQ(qw_set_sampling(sequence.get(), course.sampling.c_str()), QW_OK) << qw_error_message();
}

Course alone(const Engine& engine, const Course& asked, size_t steps) {
  Course result = asked;
  Sequence sequence(engine);
  set_sampling(sequence, asked);
  sequence.logits(asked.prompt);
  while (result.drawn.size() < steps) {
    result.drawn.push_back(sequence.steps(1)[0]);
    result.logits.push_back(last_logits(sequence));
  }
  return result;
}

void expect_same(const Course& batched, const Course& solo, const std::string& what) {
  EXPECT_EQ(batched.drawn, solo.drawn) << what;
  ASSERT_EQ(batched.logits.size(), solo.logits.size()) << what;
  for (size_t i = 0; i < solo.logits.size(); ++i) EXPECT_TRUE(same_bits(batched.logits[i], solo.logits[i])) << what << ", step " << i;
}

// Every engine that a bit could differ on: stored formats, q8 and q4, each form of the cache, one thread and several.
class EveryEngine : public testing::TestWithParam<std::array<const char*, 2>> {};

TEST_P(EveryEngine, GivesEachOfABatchWhatItGivesAlone) {
  const auto [name, options] = GetParam();
  const Engine engine = must_load(golden_folder(name), options);
  ASSERT_NE(engine, nullptr);
  std::mt19937 random(7);
  constexpr size_t kCourses = 6, kSteps = 9;
  std::vector<Course> courses;
  for (size_t i = 0; i < kCourses; ++i) {
    const bool greedy = i % 2 == 0;
    courses.push_back({greedy ? "{}" : R"({"temperature": 1.3, "repetition_penalty": 1.1, "seed": )" + std::to_string(i) + "}",
                       prompt_of(random, 1 + static_cast<int>(random() % 90)), {}, {}});
  }
  std::vector<Course> expected;
  for (const Course& course : courses) expected.push_back(alone(engine, course, kSteps));

  // They join and leave at random steps: each step a random choice of them, in random order, and some begin while others run.
  std::vector<std::unique_ptr<Sequence>> sequences(kCourses);
  for (size_t ended = 0; ended < kCourses;) {
    std::vector<size_t> chosen;
    for (size_t i = 0; i < kCourses; ++i) {
      if (courses[i].drawn.size() < kSteps && random() % 2 == 0) chosen.push_back(i);
    }
    std::shuffle(chosen.begin(), chosen.end(), random);
    chosen.resize(std::min<size_t>(chosen.size(), 4));
    if (chosen.empty()) continue;
    std::vector<qw_session*> batch;
    for (const size_t i : chosen) {
      if (!sequences[i]) {
        sequences[i] = std::make_unique<Sequence>(engine);
        set_sampling(*sequences[i], courses[i]);
        sequences[i]->logits(courses[i].prompt);
      }
      batch.push_back(sequences[i]->get());
    }
    Ids ids(batch.size());
    ASSERT_EQ(qw_step_many(batch.data(), static_cast<int32_t>(batch.size()), ids.data()), QW_OK) << qw_error_message();
    for (size_t at = 0; at < chosen.size(); ++at) {
      Course& course = courses[chosen[at]];
      course.drawn.push_back(ids[at]);
      course.logits.push_back(last_logits(*sequences[chosen[at]]));
      if (course.drawn.size() == kSteps) ++ended;
    }
  }
  for (size_t i = 0; i < kCourses; ++i) expect_same(courses[i], expected[i], "sequence " + std::to_string(i));
}

INSTANTIATE_TEST_SUITE_P(All, EveryEngine,
                         testing::Values(std::array{"qwen3", R"({"dtype": "exact"})"}, std::array{"qwen3-15-heads", R"({"dtype": "exact", "threads": 3})"},
                                         std::array{"qwen3", R"({"dtype": "q8", "kv": "q8"})"}, std::array{"demo", R"({"dtype": "q4", "threads": 2})"},
                                         std::array{"qwen3-mha", R"({"dtype": "q4", "kv": "f32"})"}));

class Batch : public testing::Test {
 protected:
  void SetUp() override {
    engine_ = must_load(golden_folder("qwen3"), R"({"dtype": "exact", "context_length": 40})");
    ASSERT_NE(engine_, nullptr);
  }
  Floats cold(const Ids& ids) { return Sequence(engine_).logits(ids); }

  std::mt19937 random_{3};
  Engine engine_;
};

TEST_F(Batch, LeavesTheOthersAloneWhereOneFails) {
  const Course asked = {"{}", prompt_of(random_, 20), {}, {}};
  const Course expected = alone(engine_, asked, 3);
  Sequence full(engine_), good(engine_), unprepared(engine_);
  full.logits(prompt_of(random_, 40));
  good.logits(asked.prompt);
  full.steps(1);
  qw_session* const batch[] = {full.get(), good.get(), unprepared.get()};
  Course course = asked;
  for (int i = 0; i < 3; ++i) {
    int32_t ids[3];
    ASSERT_EQ(qw_step_many(batch, 3, ids), QW_OK);
    EXPECT_EQ(ids[0], -QW_CONTEXT_OVERFLOW);
    EXPECT_EQ(std::string(qw_session_error(full.get())), "the sequence has 41 tokens, the context length is 40");
    EXPECT_EQ(ids[2], -QW_WRONG_STATE);
    EXPECT_STREQ(qw_session_error(good.get()), "");
    course.drawn.push_back(ids[1]);
    course.logits.push_back(last_logits(good));
  }
  expect_same(course, expected, "the good one");
}

TEST_F(Batch, IsRefusedWhereItIsNone) {
  Sequence one(engine_), two(engine_);
  const Engine other = must_load(golden_folder("qwen3"));
  Sequence foreign(other);
  int32_t ids[17];
  qw_session* const twice[] = {one.get(), two.get(), one.get()};
  qw_session* const mixed[] = {one.get(), foreign.get()};
  qw_session* const null[] = {one.get(), nullptr};
  const std::vector<qw_session*> many(17, one.get());
  EXPECT_EQ(qw_step_many(twice, 3, ids), -QW_INVALID_ARGUMENT);
  EXPECT_EQ(qw_step_many(mixed, 2, ids), -QW_INVALID_ARGUMENT);
  EXPECT_EQ(qw_step_many(null, 2, ids), -QW_INVALID_ARGUMENT);
  EXPECT_EQ(qw_step_many(many.data(), 17, ids), -QW_INVALID_ARGUMENT);
  EXPECT_EQ(qw_step_many(twice, 0, ids), -QW_INVALID_ARGUMENT);
  EXPECT_EQ(qw_step_many(nullptr, 1, ids), -QW_INVALID_ARGUMENT);
}

// Makes `to` a sequence of the first `count` tokens of `from`, block by block.
void take_over(const Engine& engine, Sequence& to, Sequence& from, int count) {
  const auto bytes = 256 * info_of(engine.get())["kv_bytes_per_token"].get<size_t>();
  const Ids ids(qw_tokens(from.get()), qw_tokens(from.get()) + count);
  ASSERT_EQ(qw_restore(to.get(), ids.data(), ids.size()), QW_OK) << qw_error_message();
  for (int32_t block = 0; block * 256 < count; ++block) {
    ASSERT_NE(qw_cache_block(to.get(), block), nullptr);
    std::memcpy(qw_cache_block(to.get(), block), qw_cache_block(from.get(), block), bytes);
  }
}

TEST(RestoredSequences, GoOnLikeOnesThatRanTheirTokens) {
  for (const char* kv : {"f32", "f16", "q8"}) {
    const std::string options = std::string(R"({"dtype": "q8", "kv": ")") + kv + "\"}";
    const Engine engine = must_load(golden_folder("qwen3"), options), other = must_load(golden_folder("qwen3"), options);
    std::mt19937 random(9);
    const Ids prompt = prompt_of(random, 300);
    Sequence from(engine);
    from.logits(prompt);
    EXPECT_EQ(qw_cached(from.get()), 300);
    for (const int common : {1, 255, 256, 257, 300}) {
      Ids ids(prompt.begin(), prompt.begin() + common);
      for (const int32_t id : {5, 6, 7}) ids.push_back(id);
      Sequence to(other);
      to.logits(prompt_of(random, 20));
      take_over(engine, to, from, common);
      EXPECT_EQ(qw_cached(to.get()), common);
      EXPECT_EQ(qw_step(to.get()), -QW_WRONG_STATE) << "there are no logits";
      EXPECT_EQ(to.set_prompt(ids), common);
      EXPECT_TRUE(same_bits(to.prefill(3, 1), Sequence(engine).logits(ids))) << kv << ", " << common;
    }
    EXPECT_EQ(from.set_prompt(prompt), 299) << "the first one is as it was";
  }
}

TEST_F(Batch, RestoresNoMoreThanTheContextAndTheVocabularyHold) {
  Sequence sequence(engine_);
  EXPECT_EQ(qw_cache_block(sequence.get(), 0), nullptr) << "nothing was run";
  const Ids longer = prompt_of(random_, 41), wrong = {384};
  EXPECT_EQ(qw_restore(sequence.get(), longer.data(), longer.size()), -QW_CONTEXT_OVERFLOW);
  EXPECT_EQ(qw_restore(sequence.get(), wrong.data(), wrong.size()), -QW_INVALID_ARGUMENT);
  EXPECT_EQ(qw_restore(sequence.get(), nullptr, 0), -QW_INVALID_ARGUMENT);
  const Ids ids = prompt_of(random_, 40);
  ASSERT_EQ(qw_restore(sequence.get(), ids.data(), ids.size()), QW_OK);
  EXPECT_NE(qw_cache_block(sequence.get(), 0), nullptr);
  for (const int32_t index : {-1, 1, INT32_MAX}) EXPECT_EQ(qw_cache_block(sequence.get(), index), nullptr);
}

TEST(AModelsIdentity, TellsWhoseKeysAndValuesAreWhose) {
  const auto identity = [](const Folder& folder, const char* options) {
    return info_of(must_load(folder, options).get())["identity"].get<std::string>();
  };
  const Folder folder = golden_folder("qwen3");
  const std::string exact = identity(folder, R"({"dtype": "exact"})");
  EXPECT_EQ(identity(folder, R"({"dtype": "exact", "threads": 3, "context_length": 50})"), exact);
  EXPECT_NE(identity(folder, R"({"dtype": "exact", "kv": "q8"})"), exact);
  EXPECT_NE(identity(folder, R"({"dtype": "q8"})"), exact);
  Folder turned = folder, trained = folder;
  Json config = Json::parse(text_of(folder.at("config.json")));
  config["rms_norm_eps"] = 1e-5;
  turned["config.json"] = bytes_of(config.dump());
  EXPECT_NE(identity(turned, R"({"dtype": "exact"})"), exact);
  // A value of the middle of the weights: of layers, where the embedding takes less than a half.
  Bytes& weights = trained["model.safetensors"];
  for (size_t at = weights.size() / 2; at < weights.size(); at += 2) weights[at] ^= 1;
  EXPECT_NE(identity(trained, R"({"dtype": "exact"})"), exact);
}

}  // namespace
}  // namespace qwasm::capi_test
