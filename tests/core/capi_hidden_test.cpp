// The final hidden state of a prompt through the C ABI: transformers' numbers, the same bits however it is run, and folders saved without their head.
#include <cmath>

#include "tests/core/small_model.h"

namespace qwasm::capi_test {
namespace {

constexpr int kNoLogits = -1;

size_t hidden_size(const Engine& engine) { return info_of(engine.get())["hidden_size"].get<size_t>(); }

Floats hidden_of(const Engine& engine, const Sequence& sequence) {
  const float* hidden = qw_hidden(sequence.get());
  EXPECT_NE(hidden, nullptr) << qw_error_message();
  return hidden ? Floats(hidden, hidden + hidden_size(engine)) : Floats();
}

// Runs what is missing of `ids`, by slices, with the rows of logits that are asked for.
Floats hidden_after(const Engine& engine, Sequence& sequence, const Ids& ids, int slice = 64, int logits_rows = kNoLogits) {
  int32_t remaining = static_cast<int32_t>(ids.size()) - sequence.set_prompt(ids);
  while (remaining > 0) {
    const int32_t left = qw_prefill(sequence.get(), slice, logits_rows);
    EXPECT_GE(left, 0) << qw_error_message();
    if (left < 0) return {};
    remaining = left;
  }
  return hidden_of(engine, sequence);
}

Floats cold(const Engine& engine, const Ids& ids, int slice = 64, int logits_rows = kNoLogits) {
  Sequence sequence(engine);
  return hidden_after(engine, sequence, ids, slice, logits_rows);
}

Ids some_ids(int count) {
  Ids ids;
  for (int i = 0; i < count; ++i) ids.push_back((i * i * 5 + i * 11 + 3) % 380);
  return ids;
}

class GoldenHidden : public testing::TestWithParam<const char*> {};

// The goldens hold the hidden states of all layers, (L + 1, positions, hidden_size); the last one stands behind the final norm.
TEST_P(GoldenHidden, IsThatOfTransformers) {
  const Engine engine = must_load(golden_folder(GetParam()), R"({"dtype": "exact", "context_length": 4352})");
  ASSERT_NE(engine, nullptr);
  const auto tensors = read_safetensors(read_file(golden_path(GetParam()) + "/golden.safetensors"));
  const Json golden = read_json(golden_path(GetParam()) + "/golden.json");
  for (const Json& test : golden["cases"]) {
    const Ids ids = test["ids"].get<Ids>();
    if (ids.size() > 1000) continue;  // takes seconds, and capi_golden_test has its logits
    const Floats all = floats_of(tensors.at(test["name"].get<std::string>() + ".hidden"));
    const Floats expected(all.end() - static_cast<long>(hidden_size(engine)), all.end());
    const Floats hidden = cold(engine, ids);
    ASSERT_EQ(hidden.size(), expected.size());
    for (size_t i = 0; i < hidden.size(); ++i) ASSERT_NEAR(hidden[i], expected[i], 1e-4f * std::max(1.0f, std::fabs(expected[i]))) << test["name"] << " " << i;
  }
}

TEST_P(GoldenHidden, HasTheSameBitsForAnySlicesThreadsAndLogits) {
  const Ids ids = some_ids(100);
  const Engine engine = must_load(golden_folder(GetParam()), R"({"dtype": "exact", "threads": 1})");
  ASSERT_NE(engine, nullptr);
  const Floats expected = cold(engine, ids);
  for (const int slice : {1, 7, 63}) EXPECT_TRUE(same_bits(cold(engine, ids, slice), expected)) << "slices of " << slice;
  for (const int rows : {0, 1}) EXPECT_TRUE(same_bits(cold(engine, ids, 64, rows), expected)) << rows << " rows of logits";
  for (const char* threads : {"2", "3"}) {
    const Engine other = must_load(golden_folder(GetParam()), std::string(R"({"dtype": "exact", "threads": )") + threads + "}");
    ASSERT_NE(other, nullptr);
    EXPECT_TRUE(same_bits(cold(other, ids), expected)) << threads << " threads";
  }
}

INSTANTIATE_TEST_SUITE_P(All, GoldenHidden, testing::Values("demo", "qwen3", "qwen3-untied-f16", "qwen3-15-heads"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(Hidden, OfAQuantizedModelHasTheSameBitsForAnySlices) {
  for (const char* options : {R"({"dtype": "q8"})", R"({"dtype": "q4", "kv": "q8"})"}) {
    const Engine engine = must_load(golden_folder("demo"), options);
    ASSERT_NE(engine, nullptr);
    EXPECT_TRUE(same_bits(cold(engine, some_ids(90), 13), cold(engine, some_ids(90)))) << options;
  }
}

TEST(Hidden, AfterACommonPrefixIsThatOfAColdRun) {
  const Engine engine = must_load(golden_folder("qwen3"));
  ASSERT_NE(engine, nullptr);
  Sequence sequence(engine);
  Ids ids = some_ids(70);
  hidden_after(engine, sequence, ids);
  for (const size_t common : {size_t{69}, size_t{64}, size_t{1}, size_t{0}}) {
    ids.resize(common);
    for (const int32_t id : {381, 17, 4}) ids.push_back(id);
    EXPECT_TRUE(same_bits(hidden_after(engine, sequence, ids), cold(engine, ids))) << common << " tokens in common";
  }
}

TEST(Hidden, IsThePromptsAndIsThereOnceThatWasRun) {
  const Engine engine = must_load(golden_folder("qwen3"));
  ASSERT_NE(engine, nullptr);
  const auto none = [](const Sequence& sequence) { return qw_hidden(sequence.get()) == nullptr && qw_error_code() == QW_WRONG_STATE; };
  Sequence sequence(engine);
  EXPECT_TRUE(none(sequence)) << "no prompt";
  const Ids ids = some_ids(20);
  sequence.set_prompt(ids);
  EXPECT_TRUE(none(sequence)) << "prompt not run";
  ASSERT_EQ(qw_prefill(sequence.get(), 19, kNoLogits), 1);
  EXPECT_TRUE(none(sequence)) << "prompt half run";
  ASSERT_EQ(qw_prefill(sequence.get(), 19, 0), 0);
  const Floats hidden = hidden_of(engine, sequence);
  sequence.steps(3);
  EXPECT_TRUE(same_bits(hidden_of(engine, sequence), hidden)) << "steps leave it alone";
  sequence.set_prompt(ids);
  EXPECT_TRUE(none(sequence)) << "a new prompt";
  EXPECT_EQ(qw_hidden(nullptr), nullptr);
  EXPECT_EQ(qw_error_code(), QW_INVALID_ARGUMENT);
}

TEST(Hidden, WithoutLogitsLeavesNothingToDrawFrom) {
  const Engine engine = must_load(golden_folder("qwen3"));
  ASSERT_NE(engine, nullptr);
  Sequence sequence(engine);
  hidden_after(engine, sequence, some_ids(20));
  EXPECT_EQ(qw_step(sequence.get()), -QW_WRONG_STATE);
  EXPECT_EQ(qw_logprobs(sequence.get(), 1), nullptr);
  EXPECT_TRUE(same_bits(sequence.logits(some_ids(20)), Sequence(engine).logits(some_ids(20)))) << "and the sequence goes on";
  sequence.set_prompt(some_ids(30));
  EXPECT_EQ(qw_prefill(sequence.get(), 8, -2), -QW_INVALID_ARGUMENT);
}

TEST(Hidden, ThatIsNotFiniteIsAnErrorAndIsForgotten) {
  std::vector<Tensor> tensors = small_tensors();
  Tensor& norm = find(tensors, "model.norm.weight");
  const float large = 3e38f;
  for (size_t i = 0; i < norm.data.size(); i += 4) std::memcpy(norm.data.data() + i, &large, 4);
  const Engine engine = must_load(small_folder(small_config(), tensors));
  ASSERT_NE(engine, nullptr);
  Sequence sequence(engine);
  for (int tries = 0; tries < 2; ++tries) {
    EXPECT_EQ(sequence.set_prompt(small_prompt()), 0);
    EXPECT_EQ(qw_prefill(sequence.get(), 64, kNoLogits), -QW_NOT_FINITE);
    EXPECT_NE(std::string(qw_error_message()).find("hidden state at position 11"), std::string::npos) << qw_error_message();
    EXPECT_EQ(qw_hidden(sequence.get()), nullptr);
  }
}

// ---- folders of a model that was saved without its head

std::vector<Tensor> headless_tensors() {
  std::vector<Tensor> tensors = small_tensors();
  for (Tensor& tensor : tensors) tensor.name.erase(0, std::string("model.").size());
  return tensors;
}

TEST(WithoutHead, ATiedModelIsTheSameModel) {
  const Folder folder = small_folder(small_config(), headless_tensors());
  EXPECT_TRUE(same_bits(small_logits(folder), small_logits(small_folder())));
}

TEST(WithoutHead, AnUntiedModelGivesHiddenStatesAndSaysThatItHasNoLogits) {
  Json config = small_config();
  config["tie_word_embeddings"] = false;
  const Engine engine = must_load(small_folder(config, headless_tensors())), whole = must_load(small_folder());
  ASSERT_NE(engine, nullptr);
  EXPECT_TRUE(same_bits(cold(engine, small_prompt()), cold(whole, small_prompt())));
  Sequence sequence(engine);
  sequence.set_prompt(small_prompt());
  EXPECT_EQ(qw_prefill(sequence.get(), 64, 0), -QW_UNSUPPORTED);
  EXPECT_NE(std::string(qw_error_message()).find("lm_head.weight"), std::string::npos) << qw_error_message();
  EXPECT_EQ(load(small_folder(config)).code, QW_MISSING) << "with the ordinary names a head that is not there is missing";
}

TEST(WithoutHead, NamesAreToldAsTheyStandInTheFile) {
  std::vector<Tensor> tensors = headless_tensors();
  tensors.push_back(random_tensor("layers.0.self_attn.q_proj.bias", "F32", {24}, 9));
  Loaded loaded = load(small_folder(small_config(), tensors));
  EXPECT_EQ(loaded.code, QW_UNSUPPORTED);
  EXPECT_NE(loaded.message.find("tensor layers.0.self_attn.q_proj.bias"), std::string::npos) << loaded.message;
  tensors = headless_tensors();
  std::erase_if(tensors, [](const Tensor& tensor) { return tensor.name == "layers.1.mlp.up_proj.weight"; });
  loaded = load(small_folder(small_config(), tensors));
  EXPECT_EQ(loaded.code, QW_MISSING);
  EXPECT_NE(loaded.message.find("tensor layers.1.mlp.up_proj.weight"), std::string::npos) << loaded.message;
}

}  // namespace
}  // namespace qwasm::capi_test
