// Sampling options and log-probabilities through the C ABI.
#include <cmath>

#include "tests/core/capi_support.h"

namespace qwasm::capi_test {
namespace {

class Sampling : public testing::Test {
 protected:
  void SetUp() override {
    engine_ = must_load(golden_folder("demo"));
    ASSERT_NE(engine_, nullptr);
    sequence_ = std::make_unique<Sequence>(engine_);
  }

  // The ids of a greedy run with these options.
  Ids greedy(const std::string& options) {
    EXPECT_EQ(qw_set_sampling(sequence_->get(), options.c_str()), QW_OK) << qw_error_message();
    sequence_->logits(kPrompt);
    return sequence_->steps(12);
  }

  Json logprobs(int32_t top) {
    const char* json = qw_logprobs(sequence_->get(), top);
    EXPECT_NE(json, nullptr) << qw_error_message();
    return Json::parse(json ? json : "null", nullptr, false);
  }

  const Ids kPrompt = {79, 110, 99, 101, 300, 301, 302};
  Engine engine_;
  std::unique_ptr<Sequence> sequence_;
};

TEST_F(Sampling, BiasesTheLogitsOfItsIds) {
  const Ids plain = greedy("{}");
  EXPECT_EQ(greedy(R"({"logit_bias": {}})"), plain);
  const std::string first = std::to_string(plain[0]);
  EXPECT_NE(greedy(R"({"logit_bias": {")" + first + R"(": -100}})")[0], plain[0]);
  EXPECT_EQ(greedy(R"({"logit_bias": {"123": 100}})"), Ids(12, 123));
}

TEST_F(Sampling, PenalizesWhatWasGenerated) {
  EXPECT_EQ(greedy(R"({"logit_bias": {"110": 100, "99": 60}})"), Ids(12, 110));
  const Ids penalized = greedy(R"({"logit_bias": {"110": 100, "99": 95}, "frequency_penalty": 2, "presence_penalty": 2})");
  for (const int32_t id : {99, 110}) EXPECT_NE(std::find(penalized.begin(), penalized.end(), id), penalized.end()) << id;
}

TEST_F(Sampling, RefusesOptionsOutsideTheirDomainWithNames) {
  for (const auto& [options, word] : std::map<std::string, std::string>{
           {R"({"presence_penalty": 2.1})", "presence_penalty"},
           {R"({"frequency_penalty": -3})", "frequency_penalty"},
           {R"({"frequency_penalty": "much"})", "\"much\""},
           {R"({"logit_bias": [1]})", "an array"},
           {R"({"logit_bias": {"1": 101}})", "101"},
           {R"({"logit_bias": {"1": null}})", "missing"},
           {R"({"logit_bias": {"01": 1}})", "\"01\""},
           {R"({"logit_bias": {"-1": 1}})", "\"-1\""},
           {R"({"logit_bias": {"1e2": 1}})", "\"1e2\""},
           {R"({"logit_bias": {"99999999999": 1}})", "99999999999"},
           {R"({"logit_bias": {"2048": 1}})", "2048"},
           {R"({"logit_bias": {"": 1}})", "\"\""}}) {
    EXPECT_EQ(qw_set_sampling(sequence_->get(), options.c_str()), -QW_INVALID_ARGUMENT) << options;
    EXPECT_NE(std::string(qw_error_message()).find(word), std::string::npos) << qw_error_message();
  }
}

TEST_F(Sampling, TellsTheModelsOwnLogProbabilitiesWhateverTheOptions) {
  const Ids plain = greedy("{}");
  sequence_->logits(kPrompt);
  const Ids first = sequence_->steps(1);
  const Json expected = logprobs(5)["top"];
  ASSERT_EQ(expected.size(), 5u);
  EXPECT_EQ(expected[0]["id"], plain[0]);
  EXPECT_EQ(qw_set_sampling(sequence_->get(), R"({"temperature": 3, "logit_bias": {"123": 100}, "repetition_penalty": 2})"), QW_OK);
  sequence_->logits(kPrompt);
  EXPECT_EQ(sequence_->steps(1)[0], 123);
  const Json biased = logprobs(5);
  EXPECT_EQ(biased["id"], 123);
  EXPECT_LT(biased["logprob"].get<double>(), expected[4]["logprob"].get<double>());
  EXPECT_EQ(biased["top"], expected);
}

TEST_F(Sampling, TellsTheSoftmaxOfTheLogitsAndTheBytesOfTokens) {
  const Floats logits = sequence_->logits(kPrompt);
  sequence_->steps(1);
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit));
  const Json found = logprobs(20);
  ASSERT_EQ(found["top"].size(), 20u);
  for (const Json& token : found["top"]) {
    const int32_t id = token["id"];
    EXPECT_NEAR(token["logprob"].get<double>(), logits[static_cast<size_t>(id)] - std::log(sum), 1e-6);
    std::string text;
    for (const int byte : token["bytes"]) text += static_cast<char>(byte);
    const int32_t length = qw_detokenize(engine_.get(), &id, 1, 0);
    if (std::string decoded(qw_text(engine_.get()), static_cast<size_t>(length)); decoded.find("\xef\xbf\xbd") == std::string::npos) {
      EXPECT_EQ(text, decoded);
    } else {
      EXPECT_EQ(text.size(), 1u) << "a byte of a character";
    }
  }
}

TEST_F(Sampling, HasNoLogProbabilitiesWithoutAStep) {
  const auto refused = [&](int32_t top) { return qw_logprobs(sequence_->get(), top) == nullptr ? qw_error_code() : QW_OK; };
  EXPECT_EQ(refused(0), QW_WRONG_STATE);
  sequence_->logits(kPrompt);
  EXPECT_EQ(refused(0), QW_WRONG_STATE);
  sequence_->steps(1);
  EXPECT_EQ(refused(0), QW_OK);
  EXPECT_EQ(refused(-1), QW_INVALID_ARGUMENT);
  EXPECT_EQ(refused(21), QW_INVALID_ARGUMENT);
  sequence_->set_prompt(kPrompt);
  EXPECT_EQ(refused(0), QW_WRONG_STATE);
  EXPECT_EQ(qw_logprobs(nullptr, 0), nullptr);
}

TEST(SamplingWithoutATokenizer, TellsIdsWithoutBytes) {
  const Engine engine = must_load(golden_folder("qwen3"));
  ASSERT_NE(engine, nullptr);
  Sequence sequence(engine);
  sequence.logits({1, 2, 3});
  sequence.steps(1);
  const Json found = Json::parse(qw_logprobs(sequence.get(), 2), nullptr, false);
  EXPECT_EQ(found["top"].size(), 2u);
  EXPECT_TRUE(found["bytes"].is_array() && found["bytes"].empty()) << found;
}

}  // namespace
}  // namespace qwasm::capi_test
