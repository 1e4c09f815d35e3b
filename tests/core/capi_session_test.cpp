// Sequences through the C ABI: bit-equality over slices, prefixes and threads; the end of the context; arguments out of
// their domain.
#include "tests/core/small_model.h"

namespace qwasm::capi_test {
namespace {

// A prompt longer than two slices of 64, from the ids that the small models have.
Ids long_prompt(int count, int vocab) {
  Ids ids;
  for (int i = 0; i < count; ++i) ids.push_back((i * i * 7 + i * 13 + 5) % vocab);
  return ids;
}

struct Outcome {
  Floats prompt_logits;
  Ids greedy;
  Floats last_logits;
};

Outcome outcome_of(const Engine& engine, const Ids& ids, int slice) {
  Sequence sequence(engine);
  Outcome result;
  result.prompt_logits = sequence.logits(ids, static_cast<int>(ids.size()), slice);
  result.greedy = sequence.steps(12);
  result.last_logits.assign(qw_logits(sequence.get()), qw_logits(sequence.get()) + sequence.vocab());
  return result;
}

void expect_same(const Outcome& a, const Outcome& b, const std::string& what) {
  EXPECT_TRUE(same_bits(a.prompt_logits, b.prompt_logits)) << what;
  EXPECT_EQ(a.greedy, b.greedy) << what;
  EXPECT_TRUE(same_bits(a.last_logits, b.last_logits)) << what;
}

class EveryStoredType : public testing::TestWithParam<const char*> {};

TEST_P(EveryStoredType, GivesTheSameBitsForAnySlicing) {
  const Engine engine = must_load(golden_folder(GetParam()));
  ASSERT_NE(engine, nullptr);
  const Ids ids = long_prompt(100, 380);
  const Outcome whole = outcome_of(engine, ids, 64);
  for (const int slice : {1, 7, 63})
    expect_same(outcome_of(engine, ids, slice), whole, "slices of " + std::to_string(slice));
}

TEST_P(EveryStoredType, GivesTheSameBitsForAnyNumberOfThreads) {
  const Ids ids = long_prompt(40, 380);
  const Engine one = must_load(golden_folder(GetParam()), R"({"dtype": "exact", "threads": 1})");
  ASSERT_NE(one, nullptr);
  const Outcome expected = outcome_of(one, ids, 32);
  for (const char* threads : {"2", "3", "4"}) {
    const Engine engine = must_load(golden_folder(GetParam()), std::string(R"({"dtype": "exact", "threads": )") + threads + "}");
    ASSERT_NE(engine, nullptr);
    expect_same(outcome_of(engine, ids, 32), expected, std::string(threads) + " threads");
  }
}

INSTANTIATE_TEST_SUITE_P(All, EveryStoredType,
                         testing::Values("demo", "qwen3", "qwen3-untied-f16", "qwen3-sharded-f32", "qwen3-15-heads"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

class SmallSession : public testing::Test {
 protected:
  void SetUp() override {
    engine_ = must_load(golden_folder("qwen3"));
    ASSERT_NE(engine_, nullptr);
  }

  // What a new session says of `ids`: the logits of the last token.
  Floats cold(const Ids& ids) { return Sequence(engine_).logits(ids); }

  Engine engine_;
};

TEST_F(SmallSession, ReusesTheLongestCommonPrefixWithoutChangingABit) {
  const Ids first = long_prompt(140, 380);
  for (const size_t common : {size_t{0}, size_t{1}, size_t{63}, size_t{64}, size_t{65}, size_t{139}}) {
    Sequence sequence(engine_);
    sequence.logits(first, 1, 64);
    Ids second(first.begin(), first.begin() + static_cast<long>(common));
    for (const int32_t id : {381, 17, 4, 256, 300}) second.push_back(id);
    EXPECT_EQ(sequence.set_prompt(second), static_cast<int>(common));
    EXPECT_TRUE(same_bits(sequence.prefill(5, 1), cold(second))) << common << " tokens in common";
  }
}

TEST_F(SmallSession, AlwaysRunsThePromptsLastToken) {
  const Ids ids = long_prompt(20, 380);
  Sequence sequence(engine_);
  const Floats expected = sequence.logits(ids);
  EXPECT_EQ(sequence.set_prompt(ids), 19);
  EXPECT_TRUE(same_bits(sequence.prefill(1, 1), expected));
  const Ids shorter(ids.begin(), ids.begin() + 10);
  EXPECT_EQ(sequence.set_prompt(shorter), 9);
  EXPECT_TRUE(same_bits(sequence.prefill(1, 1), cold(shorter)));
}

TEST_F(SmallSession, ReusesTheTokensThatItGenerated) {
  Ids ids = long_prompt(20, 380);
  Sequence sequence(engine_);
  sequence.logits(ids);
  for (const int32_t id : sequence.steps(10)) ids.push_back(id);
  EXPECT_EQ(qw_length(sequence.get()), 30);
  ids.push_back(7);
  // The tenth token was drawn, but not run.
  EXPECT_EQ(sequence.set_prompt(ids), 29);
  EXPECT_TRUE(same_bits(sequence.prefill(2, 1), cold(ids)));
}

TEST_F(SmallSession, StepsLikeAPrefillOfTheSameTokens) {
  Ids ids = long_prompt(20, 380);
  Sequence sequence(engine_);
  sequence.logits(ids);
  for (int i = 0; i < 5; ++i) {
    const int32_t id = sequence.steps(1)[0];
    const Floats after(qw_logits(sequence.get()), qw_logits(sequence.get()) + sequence.vocab());
    EXPECT_TRUE(same_bits(after, cold(ids))) << "the logits that token " << i << " was drawn from";
    EXPECT_EQ(id, std::max_element(after.begin(), after.end()) - after.begin());
    ids.push_back(id);
  }
}

TEST_F(SmallSession, AbandonedHalfWayThroughAPromptIsRightAfterwards) {
  const Ids first = long_prompt(90, 380), second = long_prompt(60, 371);
  Sequence sequence(engine_);
  sequence.set_prompt(first);
  EXPECT_EQ(qw_prefill(sequence.get(), 31, 0), 59);
  EXPECT_TRUE(same_bits(sequence.logits(second), cold(second)));
  sequence.set_prompt(first);
  EXPECT_EQ(qw_prefill(sequence.get(), 31, 0) >= 0, true);
  EXPECT_TRUE(same_bits(sequence.logits(first), cold(first)));
}

TEST_F(SmallSession, GivesTheSameBitsWithMoreThreadsThanTheModelHasWork) {
  const Engine engine = must_load(golden_folder("qwen3"), R"({"dtype": "exact", "threads": 64})");
  ASSERT_NE(engine, nullptr);
  const Ids ids = long_prompt(9, 380);
  EXPECT_TRUE(same_bits(Sequence(engine).logits(ids), cold(ids)));
}

TEST_F(SmallSession, KeepsTwoSequencesApart) {
  const Ids first = long_prompt(40, 380), second = long_prompt(40, 377);
  Sequence a(engine_), b(engine_);
  a.logits(first);
  b.logits(second);
  const Ids of_a = a.steps(3), of_b = b.steps(3);
  Sequence alone(engine_);
  alone.logits(first);
  EXPECT_EQ(alone.steps(3), of_a);
  alone.logits(second);
  EXPECT_EQ(alone.steps(3), of_b);
}

// ---- the end of the context

TEST_F(SmallSession, TakesAPromptThatLeavesRoomForOneMoreToken) {
  const Engine engine = must_load(golden_folder("qwen3"), R"({"dtype": "exact", "context_length": 32})");
  ASSERT_NE(engine, nullptr);
  Sequence sequence(engine);
  sequence.logits(long_prompt(31, 380));
  EXPECT_GE(qw_step(sequence.get()), 0);
  EXPECT_GE(qw_step(sequence.get()), 0) << "a full context gives one token more";
  EXPECT_EQ(qw_step(sequence.get()), -QW_CONTEXT_OVERFLOW);
}

TEST_F(SmallSession, GivesOneTokenAfterAPromptThatFillsTheContext) {
  const Engine engine = must_load(golden_folder("qwen3"), R"({"dtype": "exact", "context_length": 32})");
  ASSERT_NE(engine, nullptr);
  const Ids ids = long_prompt(32, 380);
  Sequence sequence(engine);
  EXPECT_TRUE(same_bits(sequence.logits(ids), cold(ids)));
  EXPECT_GE(qw_step(sequence.get()), 0);
  EXPECT_EQ(qw_step(sequence.get()), -QW_CONTEXT_OVERFLOW);
  EXPECT_TRUE(same_bits(sequence.logits(ids), cold(ids))) << "still usable after the overflow";
}

TEST_F(SmallSession, RefusesAPromptLongerThanTheContextWithBothNumbers) {
  const Engine engine = must_load(golden_folder("qwen3"), R"({"dtype": "exact", "context_length": 32})");
  ASSERT_NE(engine, nullptr);
  const Ids ids = long_prompt(33, 380);
  Sequence sequence(engine);
  EXPECT_EQ(qw_set_prompt(sequence.get(), ids.data(), ids.size()), -QW_CONTEXT_OVERFLOW);
  const std::string message = qw_error_message();
  EXPECT_NE(message.find("33"), std::string::npos) << message;
  EXPECT_NE(message.find("32"), std::string::npos) << message;
  const Ids fits = long_prompt(32, 380);
  EXPECT_TRUE(same_bits(sequence.logits(fits), cold(fits)));
}

TEST_F(SmallSession, NotesAContextBeyondMaxPositionEmbeddings) {
  EXPECT_EQ(info_of(engine_.get())["context_length"], 512);
  const Engine longer = must_load(golden_folder("qwen3"), R"({"dtype": "exact", "context_length": 513})");
  ASSERT_NE(longer, nullptr);
  const Json info = info_of(longer.get());
  EXPECT_EQ(info["context_length"], 513);
  ASSERT_EQ(info["notes"].size(), 1u);
  EXPECT_NE(info["notes"][0].get<std::string>().find("512"), std::string::npos) << info["notes"];
}

// ---- arguments out of their domain

TEST_F(SmallSession, RefusesWhatComesOutOfOrder) {
  Sequence sequence(engine_);
  EXPECT_EQ(qw_step(sequence.get()), -QW_WRONG_STATE) << "no prompt";
  sequence.set_prompt({1, 2, 3});
  EXPECT_EQ(qw_step(sequence.get()), -QW_WRONG_STATE) << "prompt not run";
  EXPECT_EQ(qw_prefill(sequence.get(), 2, 0), 1);
  EXPECT_EQ(qw_step(sequence.get()), -QW_WRONG_STATE) << "prompt half run";
  EXPECT_EQ(qw_prefill(sequence.get(), 2, 0), 0);
  EXPECT_GE(qw_step(sequence.get()), 0);
}

TEST_F(SmallSession, RefusesIdsOutsideTheVocabularyAndAnEmptyPrompt) {
  Sequence sequence(engine_);
  for (const Ids& ids : {Ids{1, 384}, Ids{-1}, Ids{INT32_MAX}, Ids{INT32_MIN}, Ids{}}) {
    EXPECT_EQ(qw_set_prompt(sequence.get(), ids.data(), ids.size()), -QW_INVALID_ARGUMENT);
  }
  EXPECT_TRUE(same_bits(sequence.logits({1, 383}), cold({1, 383})));
}

TEST_F(SmallSession, RefusesSamplingOptionsOutsideTheirDomain) {
  Sequence sequence(engine_);
  for (const char* options :
       {R"({"temperature": -1})", R"({"temperature": null, "top_k": -1})", R"({"temperature": NaN})",
        R"({"temperature": 1e999})", R"({"top_p": 1.5})", R"({"top_p": -0.1})", R"({"min_p": 2})",
        R"({"repetition_penalty": 0})", R"({"top_k": 1.5})", R"({"seed": -1})", R"({"seed": 9007199254740992})",
        R"({"temperature": "hot"})", R"({"tempreature": 1})", "[]", "{", ""}) {
    EXPECT_EQ(qw_set_sampling(sequence.get(), options), -QW_INVALID_ARGUMENT) << options;
    EXPECT_STRNE(qw_error_message(), "");
  }
}

TEST_F(SmallSession, DrawsTheSameTokensForTheSameSeed) {
  Sequence sequence(engine_);
  const auto draw = [&](const char* options) {
    EXPECT_EQ(qw_set_sampling(sequence.get(), options), QW_OK) << qw_error_message();
    sequence.logits(long_prompt(10, 380));
    return sequence.steps(24);
  };
  const Ids seven = draw(R"({"temperature": 1.5, "seed": 7})");
  EXPECT_EQ(draw(R"({"temperature": 1.5, "seed": 7})"), seven);
  EXPECT_NE(draw(R"({"temperature": 1.5, "seed": 8})"), seven);
  const Ids argmax = draw("{}");
  EXPECT_EQ(draw(R"({"temperature": 0, "seed": 99})"), argmax);
  EXPECT_EQ(draw(R"({"temperature": 1.5, "top_p": 0, "seed": 3})"), argmax) << "top_p 0 keeps one token";
  EXPECT_EQ(draw(R"({"temperature": 1.5, "top_k": 1, "seed": 3})"), argmax);
  EXPECT_EQ(draw(R"({"temperature": 1.5, "top_k": 0, "top_p": 1, "min_p": 0, "repetition_penalty": 1, "seed": 7})"),
            seven)
      << "all off";
}

TEST_F(SmallSession, RefusesTextCallsWithoutATokenizer) {
  EXPECT_EQ(info_of(engine_.get())["has_tokenizer"], false);
  EXPECT_EQ(qw_tokenize(engine_.get(), "a", 1, 1, 0), -QW_NO_TOKENIZER);
  const Ids ids = {1};
  EXPECT_EQ(qw_detokenize(engine_.get(), ids.data(), 1, 0), -QW_NO_TOKENIZER);
  Sequence sequence(engine_);
  sequence.logits({1, 2, 3});
  EXPECT_EQ(sequence.steps(2).size(), 2u) << "ids still work";
}

TEST(ReadBandwidth, IsANumberOnceThereAreWeights) {
  for (const int threads : {1, 3}) {
    const Engine engine = must_load(golden_folder("demo"), R"({"threads": )" + std::to_string(threads) + "}");
    const double bandwidth = qw_read_bandwidth(engine.get());
    EXPECT_GT(bandwidth, 1e6) << threads;
    EXPECT_LT(bandwidth, 1e14) << threads;
  }
}

TEST(ReadBandwidth, IsRefusedWithoutWeights) {
  EXPECT_EQ(qw_read_bandwidth(nullptr), -QW_INVALID_ARGUMENT);
  const Engine loading(qw_engine_new("{}"));
  EXPECT_EQ(qw_read_bandwidth(loading.get()), -QW_WRONG_STATE);
  const Engine tokenizer = must_load(golden_folder("demo"), R"({"parts": "tokenizer"})");
  EXPECT_EQ(qw_read_bandwidth(tokenizer.get()), -QW_WRONG_STATE);
  EXPECT_STREQ(qw_error_message(), "the model was loaded without its weights");
}

TEST(EngineOptions, AreRefusedOutsideTheirDomain) {
  for (const char* options :
       {R"({"context_length": 0})", R"({"context_length": 16777217})", R"({"context_length": 1.5})",
        R"({"threads": 0})", R"({"threads": -4})", R"({"dtype": "q3"})", R"({"kv": "q9"})", R"({"memory_budget": -1})", R"({"parts": "half"})",
        R"({"thread": 1})", R"({"context_length": "long"})", "[]", "{", ""}) {
    EXPECT_EQ(Engine(qw_engine_new(options)), nullptr) << options;
    EXPECT_EQ(qw_error_code(), QW_INVALID_ARGUMENT) << options;
    EXPECT_STRNE(qw_error_message(), "");
  }
}

TEST(EngineOptions, GiveNoSessionBeforeTheModelIsLoaded) {
  const Engine engine(qw_engine_new("{}"));
  ASSERT_NE(engine, nullptr);
  EXPECT_EQ(Session(qw_session_new(engine.get())), nullptr);
  EXPECT_EQ(qw_error_code(), QW_WRONG_STATE);
}

TEST(Appending, IsAsIfTheTokensHadBeenDrawn) {
  const Engine engine = must_load(golden_folder("demo"));
  ASSERT_NE(engine, nullptr);
  const Ids prompt = {79, 110, 99, 101, 300, 301, 302}, added = {110, 99, 300};
  const auto size = static_cast<int32_t>(prompt.size());
  Ids whole = prompt;
  whole.insert(whole.end(), added.begin(), added.end());
  Sequence other(engine), sequence(engine);
  const Floats expected = other.logits(whole);
  sequence.logits(prompt);
  sequence.steps(1);
  ASSERT_EQ(qw_append(sequence.get(), size, added.data(), added.size()), QW_OK) << qw_error_message();
  EXPECT_EQ(qw_length(sequence.get()), size + 3);
  EXPECT_EQ(sequence.steps(1), other.steps(1));
  EXPECT_TRUE(same_bits(Floats(qw_logits(sequence.get()), qw_logits(sequence.get()) + sequence.vocab()), expected));

  // Penalties over generated tokens count them, and each has its log-probability.
  ASSERT_EQ(qw_set_sampling(sequence.get(), R"({"logit_bias": {"110": 100, "99": 99}, "frequency_penalty": 2})"), QW_OK);
  sequence.logits(prompt);
  const int32_t id = 110;
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(qw_append(sequence.get(), size + i, &id, 1), QW_OK) << qw_error_message();
    const char* json = qw_logprobs(sequence.get(), 0);
    ASSERT_NE(json, nullptr) << qw_error_message();
    EXPECT_EQ(Json::parse(json, nullptr, false)["id"], 110);
  }
  EXPECT_EQ(sequence.steps(1), Ids{99});
}

TEST(Appending, LeavesWhatWasRunAndKeepsToTheContext) {
  const Engine engine = must_load(golden_folder("demo"), R"({"dtype": "exact", "context_length": 6})");
  ASSERT_NE(engine, nullptr);
  const Ids ids = {1, 2, 3, 4, 5};
  const auto append = [&](qw_session* session, int32_t length, size_t count) { return qw_append(session, length, ids.data(), count); };
  Sequence sequence(engine);
  sequence.logits({7, 8, 9});
  EXPECT_EQ(append(sequence.get(), 2, 1), -QW_INVALID_ARGUMENT) << "a token of the prompt would go";
  EXPECT_EQ(append(sequence.get(), 4, 1), -QW_INVALID_ARGUMENT) << "a token would be missing";
  EXPECT_EQ(append(sequence.get(), 3, 0), -QW_INVALID_ARGUMENT);
  EXPECT_EQ(append(sequence.get(), 3, 5), -QW_CONTEXT_OVERFLOW);
  const int32_t no_token = 1 << 20;
  EXPECT_EQ(qw_append(sequence.get(), 3, &no_token, 1), -QW_INVALID_ARGUMENT);
  EXPECT_EQ(qw_append(nullptr, 3, ids.data(), 1), -QW_INVALID_ARGUMENT);
  EXPECT_EQ(qw_append(sequence.get(), 3, nullptr, 1), -QW_INVALID_ARGUMENT);
  sequence.steps(2);
  EXPECT_EQ(append(sequence.get(), 3, 1), -QW_INVALID_ARGUMENT) << "the first step's token has been run";
  EXPECT_EQ(append(sequence.get(), 4, 3), QW_OK) << qw_error_message();
  EXPECT_EQ(qw_length(sequence.get()), 7);
  EXPECT_EQ(qw_step(sequence.get()), -QW_CONTEXT_OVERFLOW);
}

}  // namespace
}  // namespace qwasm::capi_test
