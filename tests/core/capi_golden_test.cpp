// Every golden model through the C ABI: logits and greedy tokens of Hugging Face transformers.
#include <algorithm>
#include <bit>
#include <cmath>

#include "tests/core/small_model.h"

namespace qwasm::capi_test {
namespace {

class GoldenModel : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    golden_ = read_json(golden_path(GetParam()) + "/golden.json");
    ASSERT_FALSE(golden_["cases"].empty());
    // Two models have a case beyond 4,000 tokens, far past their max_position_embeddings.
    size_t longest = 0;
    for (const Json& test : golden_["cases"]) longest = std::max(longest, test["ids"].size() + test["greedy"].size());
    engine_ = must_load(golden_folder(GetParam()), Json{{"dtype", "exact"}, {"context_length", longest}, {"threads", 2}}.dump());
    ASSERT_NE(engine_, nullptr);
  }

  Json golden_;
  Engine engine_;
};

// 1e-4, or a hundred-thousandth of the largest logit where that is above 10.
void expect_close(const Floats& actual, const Floats& expected, const std::string& name) {
  ASSERT_EQ(actual.size(), expected.size()) << name;
  float largest = 0, worst = 0;
  for (const float logit : expected) largest = std::max(largest, std::fabs(logit));
  for (size_t i = 0; i < actual.size(); ++i) {
    const float difference = std::fabs(actual[i] - expected[i]);
    if (!(difference <= worst)) worst = difference;  // a NaN is the worst
  }
  EXPECT_LE(worst, 1e-4f * std::max(1.0f, largest / 10)) << name << ": largest logit " << largest;
}

// FNV-1a over the words of the logits: short enough to be written down, different for any different bit.
std::string bits_of(const Floats& logits) {
  uint32_t hash = 2166136261u;
  for (const float logit : logits) hash = (hash ^ std::bit_cast<uint32_t>(logit)) * 16777619u;
  char text[9];
  std::snprintf(text, sizeof text, "%08x", hash);
  return text;
}

// One test for all, because the cases beyond 4,000 tokens are run once.
TEST_P(GoldenModel, GivesTheLogitsAndTheGreedyTokensOfTransformers) {
  const auto tensors = read_safetensors(read_file(golden_path(GetParam()) + "/golden.safetensors"));
  // What this build computes, and the wasm modules must compute in every engine.
  Json bits = read_json("tests/golden/logit-bits.json")[GetParam()];
  for (const Json& test : golden_["cases"]) {
    Sequence sequence(engine_);  // a new one: every position is wanted, not only those after a common prefix
    const auto name = test["name"].get<std::string>();
    const Ids ids = test["ids"].get<Ids>(), expected = test["greedy"].get<Ids>();
    const int kept = test.contains("keep") ? test["keep"].get<int>() : static_cast<int>(ids.size());
    const Floats logits = sequence.logits(ids, kept);
    expect_close(logits, floats_of(tensors.at(name + ".logits")), name);
    EXPECT_EQ(bits_of(logits), bits[name]) << GetParam() << " " << name;
    EXPECT_EQ(sequence.steps(static_cast<int>(expected.size())), expected) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(All, GoldenModel,
                         testing::Values("demo", "qwen3", "qwen3-untied-f16", "qwen3-sharded-f32",
                                         "qwen3-tied-with-head", "qwen3-old-config", "qwen3-yarn", "qwen3-mha",
                                         "qwen3-15-heads", "qwen2", "qwen2-14-heads", "llama3-rope", "llama-9-heads",
                                         "mistral-15-heads", "smollm3-nope"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

// Options of an engine, as they stand in the name of a run: "demo q4 kv q8".
struct QuantizedRun {
  const char* name;
  const char* dtype;
  const char* kv;
};
class QuantizedDemo : public testing::TestWithParam<QuantizedRun> {};

// Near the exact logits (the likeliest token mostly the same), and the same bits in every build.
TEST_P(QuantizedDemo, StaysNearTransformersWithTheSameBitsEverywhere) {
  const std::string dtype = GetParam().dtype, kv = GetParam().kv;
  const Engine engine = must_load(golden_folder("demo"), R"({"threads": 2, "kv": ")" + kv + R"(", "dtype": ")" + dtype + "\"}");
  ASSERT_NE(engine, nullptr);
  EXPECT_EQ(info_of(engine.get())["dtype"], dtype);
  const auto tensors = read_safetensors(read_file(golden_path("demo") + "/golden.safetensors"));
  Json bits = read_json("tests/golden/logit-bits.json")[GetParam().name];
  int same = 0, positions = 0;
  const Json golden = read_json(golden_path("demo") + "/golden.json");
  for (const Json& test : golden["cases"]) {
    Sequence sequence(engine);
    const auto name = test["name"].get<std::string>();
    const Ids ids = test["ids"].get<Ids>();
    const Floats expected = floats_of(tensors.at(name + ".logits")), actual = sequence.logits(ids, static_cast<int>(ids.size()));
    ASSERT_EQ(actual.size(), expected.size());
    EXPECT_EQ(bits_of(actual), bits[name]) << GetParam().name << " " << name;
    for (size_t at = 0; at < actual.size(); at += 2048, ++positions) {
      const auto likeliest = [&](const Floats& logits) { return std::max_element(logits.begin() + at, logits.begin() + at + 2048) - logits.begin(); };
      same += likeliest(actual) == likeliest(expected);
    }
    // Slices change nothing here either.
    EXPECT_EQ(bits_of(Sequence(engine).logits(ids, static_cast<int>(ids.size()), 7)), bits_of(actual)) << name;
  }
  EXPECT_GE(same, positions * (dtype == "q8" ? 0.97 : 0.85)) << same << " of " << positions;
}

INSTANTIATE_TEST_SUITE_P(All, QuantizedDemo, testing::Values(QuantizedRun{"demo q8", "q8", "auto"}, QuantizedRun{"demo q4", "q4", "auto"}, QuantizedRun{"demo q4 kv q8", "q4", "q8"}),
                         [](const auto& info) {
                           std::string name = info.param.name;
                           std::replace(name.begin(), name.end(), ' ', '_');
                           return name;
                         });

// Biases, ragged widths and layers without positions in panels too: near the exact logits, and the same bits for all threads and slices.
class QuantizedFamily : public testing::TestWithParam<const char*> {};

TEST_P(QuantizedFamily, StaysNearTransformersInQ8) {
  const auto tensors = read_safetensors(read_file(golden_path(GetParam()) + "/golden.safetensors"));
  const Json golden = read_json(golden_path(GetParam()) + "/golden.json");
  const Engine engine = must_load(golden_folder(GetParam()), R"({"dtype": "q8", "kv": "f32", "threads": 2, "context_length": 128})");
  const Engine alone = must_load(golden_folder(GetParam()), R"({"dtype": "q8", "kv": "f32", "threads": 1, "context_length": 128})");
  ASSERT_TRUE(engine && alone);
  for (const Json& test : golden["cases"]) {
    const Ids ids = test["ids"].get<Ids>();
    const int rows = static_cast<int>(ids.size());
    const Floats expected = floats_of(tensors.at(test["name"].get<std::string>() + ".logits")), actual = Sequence(engine).logits(ids, rows);
    ASSERT_EQ(actual.size(), expected.size());
    double error = 0, power = 0;
    for (size_t i = 0; i < actual.size(); ++i) {
      error += (actual[i] - expected[i]) * (actual[i] - expected[i]);
      power += expected[i] * expected[i];
    }
    // Random weights carry q8's rounding on: 3 to 8 % in all of them, Qwen3's too.
    EXPECT_LT(std::sqrt(error / power), 0.1) << GetParam() << " " << test["name"];
    EXPECT_TRUE(same_bits(Sequence(alone).logits(ids, rows, 7), actual)) << GetParam() << " " << test["name"];
  }
}

INSTANTIATE_TEST_SUITE_P(All, QuantizedFamily,
                         testing::Values("qwen3-mha", "qwen2", "qwen2-14-heads", "llama3-rope", "llama-9-heads", "mistral-15-heads", "smollm3-nope"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(DemoModel, SpeaksTheTextOfTransformersPieceByPiece) {
  const Engine engine = must_load(golden_folder("demo"));
  ASSERT_NE(engine, nullptr);
  Sequence sequence(engine);
  const Json golden = read_json("tests/golden/demo/golden.json");
  for (const Json& test : golden["cases"]) {
    const auto prompt = test["text"].get<std::string>();
    const int32_t count = qw_tokenize(engine.get(), prompt.data(), prompt.size(), 1, 0);
    ASSERT_GT(count, 0) << qw_error_message();
    const Ids ids(qw_ids(engine.get()), qw_ids(engine.get()) + count);
    EXPECT_EQ(ids, test["ids"].get<Ids>());

    sequence.logits(ids);
    std::string pieces;
    const Ids greedy = sequence.steps(static_cast<int>(test["greedy"].size()), &pieces);
    const int32_t rest = qw_flush(sequence.get());
    ASSERT_GE(rest, 0);
    pieces.append(qw_piece_text(sequence.get()), static_cast<size_t>(rest));

    const auto text_of_ids = [&](int32_t skip_special) {
      const int32_t length = qw_detokenize(engine.get(), greedy.data(), greedy.size(), skip_special);
      EXPECT_GE(length, 0) << qw_error_message();
      return std::string(qw_text(engine.get()), static_cast<size_t>(std::max(length, 0)));
    };
    EXPECT_EQ(text_of_ids(0), test["greedy_text"].get<std::string>());
    EXPECT_EQ(pieces, text_of_ids(1)) << "pieces leave special tokens out and nothing else";
  }
}

TEST(DemoModel, SaysWhatItIs) {
  const Engine engine = must_load(golden_folder("demo"));
  ASSERT_NE(engine, nullptr);
  const Json info = info_of(engine.get());
  EXPECT_EQ(info["architecture"], "Qwen3ForCausalLM");
  EXPECT_EQ(info["parameters"], 3148544);
  EXPECT_EQ(info["layers"], 4);
  EXPECT_EQ(info["vocab_size"], 2048);
  EXPECT_EQ(info["known_tokens"], 2025);
  EXPECT_EQ(info["context_length"], 2048);
  EXPECT_EQ(info["stored_dtypes"], Json::parse(R"(["BF16"])"));
  EXPECT_EQ(info["eos_token_ids"], Json::parse("[2018, 2016]"));
  EXPECT_EQ(info["generation_config"]["top_k"], 20);
  EXPECT_EQ(info["has_tokenizer"], true);
  EXPECT_TRUE(info["chat_templates"].contains("default"));
  EXPECT_EQ(info["special_tokens"], Json::parse(R"({"eos_token": "<|im_end|>", "pad_token": "<|endoftext|>"})"));
  EXPECT_EQ(info["kv_bytes_per_token"], 4 /* layers */ * 2 /* key, value */ * 2 * 64 * 4);
  EXPECT_EQ(info["notes"], Json::array());
}

}  // namespace
}  // namespace qwasm::capi_test
