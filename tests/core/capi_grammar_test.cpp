// Grammars through the C ABI: forced tokens give the same bits as drawn ones, end tokens, the context's end, and errors.
#include "tests/core/capi_support.h"

namespace qwasm::capi_test {
namespace {

class Grammars : public testing::Test {
 protected:
  void SetUp() override {
    engine_ = must_load(golden_folder("demo"));
    ASSERT_NE(engine_, nullptr);
    sequence_ = std::make_unique<Sequence>(engine_);
  }

  // The ids and the text that follow the prompt, to the grammar's end or for 60 tokens.
  Ids follow(const char* gbnf, std::string* text) {
    sequence_->logits(kPrompt);
    EXPECT_EQ(qw_set_grammar(sequence_->get(), gbnf), QW_OK) << qw_error_message();
    Ids ids;
    while (ids.size() < 60 && qw_is_complete(sequence_->get()) == 0) {
      const Ids next = sequence_->steps(1, text);
      if (next.empty()) break;
      ids.push_back(next[0]);
    }
    return ids;
  }

  Ids encode(const std::string& text) {
    const int32_t count = qw_tokenize(engine_.get(), text.data(), text.size(), 0, 0);
    EXPECT_GE(count, 0) << qw_error_message();
    return Ids(qw_ids(engine_.get()), qw_ids(engine_.get()) + std::max(count, 0));
  }

  const Ids kPrompt = {79, 110, 99, 101, 300, 301, 302};
  Engine engine_;
  std::unique_ptr<Sequence> sequence_;
};

TEST_F(Grammars, ForcedTextIsTheTokenizersOwnDivision) {
  std::string text;
  const std::string expected = "Once upon a time there was a little dog named Tom.";
  const Ids ids = follow(("root ::= \"" + expected + "\"").c_str(), &text);
  EXPECT_EQ(text, expected);
  EXPECT_EQ(ids, encode(expected));
}

TEST_F(Grammars, ForcedTokensGiveTheBitsOfAPrompt) {
  std::string text;
  Ids whole = kPrompt;
  for (const int32_t id : follow("root ::= \"The little dog, the big cat\"", &text)) whole.push_back(id);
  ASSERT_GT(whole.size(), kPrompt.size() + 4);
  ASSERT_EQ(qw_set_grammar(sequence_->get(), nullptr), QW_OK);
  ASSERT_EQ(sequence_->steps(1).size(), 1u);
  const Floats after_forced(qw_logits(sequence_->get()), qw_logits(sequence_->get()) + sequence_->vocab());
  EXPECT_TRUE(same_bits(after_forced, Sequence(engine_).logits(whole)));
}

TEST_F(Grammars, ForcedTokensHaveLogProbabilities) {
  sequence_->logits(kPrompt);
  ASSERT_EQ(qw_set_grammar(sequence_->get(), "root ::= \"The little dog, the big cat\""), QW_OK);
  Ids whole = kPrompt;
  Sequence other(engine_);
  while (qw_is_complete(sequence_->get()) == 0) {
    const Ids next = sequence_->steps(1);
    ASSERT_EQ(next.size(), 1u);
    const char* json = qw_logprobs(sequence_->get(), 3);
    ASSERT_NE(json, nullptr) << qw_error_message();
    const Floats expected = other.logits(whole);
    EXPECT_TRUE(same_bits(Floats(qw_logits(sequence_->get()), qw_logits(sequence_->get()) + sequence_->vocab()), expected));
    EXPECT_EQ(Json::parse(json, nullptr, false)["id"], next[0]);
    whole.push_back(next[0]);
  }
}

TEST_F(Grammars, AreOverAfterNullAndBeginAnewWhenSet) {
  std::string text;
  follow("root ::= \"ab\"", &text);
  EXPECT_EQ(qw_is_complete(sequence_->get()), 1);
  EXPECT_EQ(qw_set_grammar(sequence_->get(), "root ::= \"cd\""), QW_OK);
  EXPECT_EQ(qw_is_complete(sequence_->get()), 0);
  sequence_->steps(1, &text);
  EXPECT_EQ(text.substr(0, 3), "abc");
  EXPECT_EQ(qw_set_grammar(sequence_->get(), nullptr), QW_OK);
  EXPECT_EQ(qw_is_complete(sequence_->get()), 0);
  EXPECT_EQ(sequence_->steps(5).size(), 5u);
}

TEST_F(Grammars, AreFollowedUntilTheContextIsFull) {
  const Engine engine = must_load(golden_folder("demo"), R"({"dtype": "exact", "context_length": 12})");
  ASSERT_NE(engine, nullptr);
  Sequence sequence(engine);
  sequence.logits(kPrompt);
  ASSERT_EQ(qw_set_grammar(sequence.get(), "root ::= \"a b c d e f g h i j k l m n o p q\""), QW_OK);
  EXPECT_EQ(sequence.steps(6).size(), 6u);  // one more than the 5 free places, as without a grammar
  EXPECT_EQ(qw_step(sequence.get()), -QW_CONTEXT_OVERFLOW);
}

TEST_F(Grammars, NeedATokenizerAndNoMistakes) {
  EXPECT_EQ(qw_set_grammar(nullptr, "root ::= \"a\""), -QW_INVALID_ARGUMENT);
  EXPECT_EQ(qw_set_grammar(sequence_->get(), "root ::= "), QW_OK);
  EXPECT_EQ(qw_set_grammar(sequence_->get(), "root = \"a\""), -QW_INVALID_ARGUMENT);
  EXPECT_EQ(qw_is_complete(nullptr), -QW_INVALID_ARGUMENT);
  const Engine without = must_load(golden_folder("qwen3"));
  ASSERT_NE(without, nullptr);
  Sequence sequence(without);
  EXPECT_EQ(qw_set_grammar(sequence.get(), "root ::= \"a\""), -QW_NO_TOKENIZER);
}

}  // namespace
}  // namespace qwasm::capi_test
