// GGUF models through the C ABI: logits of transformers on the decoded weights, tokenizer, templates, parts; and every wrong file.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "gguf_support.h"
#include "tests/core/small_model.h"

namespace qwasm::capi_test {
namespace {

using gguf_test::File;
using gguf_test::number;

const std::string kGoldens = "tests/golden/gguf/";

Folder folder_of(std::initializer_list<std::string> files) {
  Folder folder;
  for (const std::string& file : files) folder[file] = read_file(kGoldens + file);
  return folder;
}

std::string options(const std::string& file, const std::string& more = R"("dtype": "exact")") { return R"({"gguf": ")" + file + R"(", )" + more + "}"; }

Folder parts() {
  return folder_of({"qwen3-parts-q8_0-00001-of-00003.gguf", "qwen3-parts-q8_0-00002-of-00003.gguf", "qwen3-parts-q8_0-00003-of-00003.gguf"});
}

void expect_golden(const Engine& engine, const std::string& model) {
  const auto tensors = read_safetensors(read_file(kGoldens + "golden.safetensors"));
  const Json cases = read_json(kGoldens + "golden.json")["models"][model];
  for (const Json& test : cases) {
    Sequence sequence(engine);
    const auto name = test["name"].get<std::string>();
    const Floats expected = floats_of(tensors.at(model + "." + name + ".logits"));
    const Floats logits = sequence.logits(test["ids"].get<Ids>(), static_cast<int>(expected.size() / sequence.vocab()));
    ASSERT_EQ(logits.size(), expected.size());
    float worst = 0;
    for (size_t i = 0; i < expected.size(); ++i) {
      const float difference = std::fabs(logits[i] - expected[i]);
      if (!(difference <= worst)) worst = difference;
    }
    EXPECT_LE(worst, 1e-4f) << model << " " << name;
    const Ids greedy = test["greedy"].get<Ids>();
    EXPECT_EQ(sequence.steps(static_cast<int>(greedy.size())), greedy) << model << " " << name;
  }
}

class GgufModel : public testing::TestWithParam<const char*> {};

TEST_P(GgufModel, GivesTheLogitsAndGreedyTokensOfTransformers) {
  const std::string file = std::string(GetParam()) + ".gguf";
  for (const Order order : {Order::kAtOnce, Order::kShuffled}) {
    const Engine engine = must_load(folder_of({file}), options(file, R"("dtype": "exact", "threads": 2)"), {order, order == Order::kAtOnce});
    ASSERT_NE(engine, nullptr);
    expect_golden(engine, GetParam());
  }
}

INSTANTIATE_TEST_SUITE_P(All, GgufModel, testing::Values("qwen3-f16", "qwen3-q8_0", "qwen3-q4_0", "qwen3-untied-bf16-v2", "qwen3-yarn-q4_0", "qwen2-q8_0", "llama3-rope-q8_0", "smollm3-nope-q4_0"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(Gguf, PartsLoadFromAnyOfThem) {
  for (const auto& [file, bytes] : parts()) {
    const Engine engine = must_load(parts(), options(file));
    ASSERT_NE(engine, nullptr);
    expect_golden(engine, "qwen3-parts-q8_0");
  }
}

TEST(Gguf, HasTheBitsOfTheSameModelInOneFile) {
  const Ids ids = {1, 2, 3, 200};
  const Engine whole = must_load(folder_of({"qwen3-q8_0.gguf"}), options("qwen3-q8_0.gguf")), split = must_load(parts(), options(parts().begin()->first));
  Sequence a(whole), b(split);
  EXPECT_TRUE(same_bits(a.logits(ids, 4), b.logits(ids, 4)));
}

TEST(Gguf, KeepsWhatIsStoredUnlessAskedOtherwise) {
  const Folder folder = folder_of({"qwen3-q4_0.gguf"});
  const Engine engine = must_load(folder, R"({"gguf": "qwen3-q4_0.gguf"})");
  EXPECT_EQ(info_of(engine.get())["dtype"], "stored");
  EXPECT_EQ(info_of(engine.get())["stored_dtypes"], Json::parse(R"(["F32", "Q4_0"])"));
  EXPECT_EQ(info_of(must_load(folder, options("qwen3-q4_0.gguf", R"("dtype": "q8")")).get())["dtype"], "q8");
}

TEST(Gguf, DescribesItself) {
  const Engine engine = must_load(folder_of({"qwen3-q8_0.gguf"}), options("qwen3-q8_0.gguf"));
  const Json info = info_of(engine.get());
  EXPECT_EQ(info["architecture"], "Qwen3ForCausalLM");
  EXPECT_EQ(info["vocab_size"], 384);
  EXPECT_EQ(info["max_position_embeddings"], 512);
  EXPECT_EQ(info["known_tokens"], 345) << "the others are unused";
  EXPECT_EQ(info["eos_token_ids"], Json::parse("[342]"));
  EXPECT_EQ(info["special_tokens"]["eos_token"], "<|im_end|>");
  EXPECT_EQ(info["special_tokens"]["bos_token"], "<|im_start|>");
  EXPECT_EQ(info["chat_templates"].size(), 2u);
  EXPECT_EQ(info["chat_templates"]["shout"], "{{ messages[0].content | upper }}");
  EXPECT_EQ(info["added_tokens"].size(), 4u);
  EXPECT_EQ(info["added_tokens"][2], Json::parse(R"({"content": "<think>", "id": 343, "special": false})"));
}

TEST(Gguf, TokenizesAsTheTokenizerItWasMadeOf) {
  const Json golden = read_json(kGoldens + "golden.json")["texts"];
  ASSERT_FALSE(golden.empty());
  // Of a part that is not the first, the first alone is fetched too.
  Folder folder = parts();
  folder.erase("qwen3-parts-q8_0-00002-of-00003.gguf");
  const Engine engine = must_load(folder, options("qwen3-parts-q8_0-00003-of-00003.gguf", R"("parts": "tokenizer")"));
  ASSERT_NE(engine, nullptr);
  for (const Json& test : golden) {
    const auto text = test["text"].get<std::string>();
    const int32_t count = qw_tokenize(engine.get(), text.data(), text.size(), 1, 0);
    ASSERT_GE(count, 0) << qw_error_message();
    const int32_t* ids = qw_ids(engine.get());
    EXPECT_EQ(Ids(ids, ids + count), test["ids"].get<Ids>()) << text;
  }
}

// Rows of q_proj and k_proj stand in another order in Llama's files, which each form of weights must put right.
TEST(Gguf, PutsInterleavedHeadsRightInEveryDtype) {
  const Json test = read_json(kGoldens + "golden.json")["models"]["llama3-rope-q8_0"][0];
  const Folder folder = folder_of({"llama3-rope-q8_0.gguf"});
  const Ids ids = test["ids"].get<Ids>(), greedy = test["greedy"].get<Ids>();
  const auto expected = floats_of(read_safetensors(read_file(kGoldens + "golden.safetensors")).at("llama3-rope-q8_0.short.logits"));
  for (const char* dtype : {R"("dtype": "stored")", R"("dtype": "q8")"}) {
    const Engine engine = must_load(folder, options("llama3-rope-q8_0.gguf", dtype));
    Sequence sequence(engine);
    const Floats logits = sequence.logits(ids, static_cast<int>(ids.size()));
    double difference = 0, norm = 0;
    for (size_t i = 0; i < logits.size(); ++i) {
      difference += (logits[i] - expected[i]) * (logits[i] - expected[i]);
      norm += expected[i] * expected[i];
    }
    EXPECT_LT(difference, 2e-3 * norm) << dtype << ": activations of 8 bits change logits by 1 or 2 %, wrong rows by 100 %";
  }
}

// ---- wrong files

void expect_refused(const Folder& folder, const std::string& file, int32_t code, const std::string& words, const std::string& more = R"("dtype": "exact")") {
  const Loaded loaded = load(folder, options(file, more));
  EXPECT_EQ(loaded.code, code) << loaded.message;
  EXPECT_NE(loaded.message.find(words), std::string::npos) << loaded.message;
}

void expect_header_refused(const File& file, int32_t code, const std::string& words, const std::string& parts = "headers") {
  expect_refused({{"m.gguf", bytes_of(file.bytes())}}, "m.gguf", code, words, R"("parts": ")" + parts + R"(")");
}

File small_header(const std::string& architecture = "qwen3") {
  File file;
  file.add("general.architecture", architecture);
  for (const auto& [key, value] : std::initializer_list<std::pair<const char*, uint32_t>>{
           {".block_count", 1}, {".embedding_length", 32}, {".feed_forward_length", 64}, {".attention.head_count", 2}, {".context_length", 64}}) {
    file.add(architecture + key, value);
  }
  file.tensors = {{"token_embd.weight", {32, 16}, gguf_test::kStoredF32, 0}};
  file.data_bytes = 32 * 16 * 4;
  return file;
}

TEST(GgufConfig, RefusesByNameWhatItDoesNotKnow) {
  ASSERT_EQ(load({{"m.gguf", bytes_of(small_header().bytes())}}, options("m.gguf", R"("parts": "headers")")).code, QW_OK);
  expect_header_refused(small_header("gemma3"), QW_UNSUPPORTED, "general.architecture: qwasm does not implement the string \"gemma3\"");
  expect_header_refused(File(), QW_MISSING, "token_embd");
  File nameless = File();
  nameless.tensors = small_header().tensors;
  nameless.data_bytes = small_header().data_bytes;
  expect_header_refused(nameless, QW_MISSING, "general.architecture");
  expect_header_refused(small_header().add("qwen3.logit_scale", gguf_test::kF32, number(0.5f)), QW_UNSUPPORTED, "qwen3.logit_scale: qwasm does not implement 0.5");
  expect_header_refused(small_header().add("general.type", "adapter"), QW_UNSUPPORTED, "adapter");
  expect_header_refused(small_header().add("qwen3.expert_count", 8u), QW_UNSUPPORTED, "qwen3.expert_count");
  expect_header_refused(small_header().add("qwen3.rope.dimension_count", 8u), QW_UNSUPPORTED, "qwen3.rope.dimension_count");
  expect_header_refused(small_header().add("qwen3.attention.value_length", 8u), QW_UNSUPPORTED, "qwen3.attention.value_length");
  expect_header_refused(small_header().add("qwen3.attention.causal", gguf_test::kBool, number(uint8_t{0})), QW_UNSUPPORTED, "qwen3.attention.causal");
  expect_header_refused(small_header().add("qwen3.attention.sliding_window", 16u), QW_UNSUPPORTED, "qwen3.attention.sliding_window");
  EXPECT_EQ(load({{"m.gguf", bytes_of(small_header("llama").add("llama.attention.sliding_window", 16u).bytes())}}, options("m.gguf", R"("parts": "headers")")).code, QW_OK)
      << "Mistral's, which acts in long contexts only";
  expect_header_refused(small_header().add("qwen3.rope.scaling.type", "longrope"), QW_UNSUPPORTED, "longrope");
  expect_header_refused(small_header().add("qwen3.rope.scale_linear", gguf_test::kF32, number(2.0f)), QW_UNSUPPORTED, "qwen3.rope.scale_linear");
}

TEST(GgufConfig, TakesWhatSaysNothing) {
  const File file = small_header()
                        .add("qwen3.logit_scale", gguf_test::kF32, number(0.0f))
                        .add("qwen3.rope.scaling.type", "none")
                        .add("qwen3.vocab_size", 16u)
                        .add("llama.logit_scale", gguf_test::kF32, number(2.0f))
                        .add("general.name", "a name")
                        .add_array("qwen3.attention.head_count_kv", gguf_test::kI32, 1, number(int32_t{1}));
  const Engine engine = must_load({{"m.gguf", bytes_of(file.bytes())}}, options("m.gguf", R"("parts": "headers")"));
  const char* text = qw_inspect(engine.get(), 16, 1e9);
  ASSERT_NE(text, nullptr) << qw_error_message();
  const Json report = Json::parse(text, nullptr, false);
  EXPECT_EQ(report["attention"]["key_value_heads"], 1);
  EXPECT_EQ(report["attention"]["head_dim"], 16);
  EXPECT_EQ(report["vocab_size"], 16);
  EXPECT_EQ(report["tied_embeddings"], true);
}

TEST(GgufConfig, DescribesExpertsThatItDoesNotRun) {
  const File file = small_header("qwen3moe").add("qwen3moe.expert_count", 8u).add("qwen3moe.expert_used_count", 2u).add("qwen3moe.expert_feed_forward_length", 16u);
  const Engine engine = must_load({{"m.gguf", bytes_of(file.bytes())}}, options("m.gguf", R"("parts": "headers")"));
  const char* text = qw_inspect(engine.get(), 16, 1e9);
  ASSERT_NE(text, nullptr) << qw_error_message();
  const Json report = Json::parse(text, nullptr, false);
  EXPECT_EQ(report["runnable"], false);
  EXPECT_EQ(report["experts"]["count"], 8);
  expect_header_refused(file, QW_UNSUPPORTED, "mixture of experts", "model");
}

TEST(GgufConfig, SaysWhichFileHasAFieldThatConfigJsonCouldNot) {
  File file = small_header();
  file.entries.erase(file.entries.begin() + 2);
  expect_header_refused(file, QW_MISSING, "m.gguf: as config.json: hidden_size is missing");
  expect_header_refused(small_header().add_array("qwen3.attention.head_count_kv", gguf_test::kI32, 2, number(int32_t{1}) + number(int32_t{2})), QW_INVALID_FILE,
                        "num_key_value_heads");
}

File with_tokenizer(const std::string& model, const std::string& pre) {
  File file = small_header();
  file.add("tokenizer.ggml.model", model).add("tokenizer.ggml.pre", pre);
  return file.add_texts("tokenizer.ggml.tokens", {"a", "b", "ab"}).add_texts("tokenizer.ggml.merges", {"a b"});
}

TEST(GgufTokenizer, RefusesByNameWhatItDoesNotKnow) {
  const auto refused = [](const File& file, int32_t code, const std::string& words) { expect_header_refused(file, code, words, "tokenizer"); };
  EXPECT_EQ(load({{"m.gguf", bytes_of(with_tokenizer("gpt2", "qwen2").bytes())}}, options("m.gguf", R"("parts": "tokenizer")")).code, QW_OK);
  refused(with_tokenizer("llama", "qwen2"), QW_UNSUPPORTED, "tokenizer.ggml.model: \"llama\" is not implemented");
  refused(with_tokenizer("gpt2", "dbrx"), QW_UNSUPPORTED, "tokenizer.ggml.pre: the pre-tokenizer \"dbrx\" is not implemented");
  refused(small_header(), QW_MISSING, "no tokenizer");
  refused(with_tokenizer("gpt2", "qwen2").add_array("tokenizer.ggml.token_type", gguf_test::kI32, 1, number(int32_t{1})), QW_INVALID_FILE, "expected one for each of 3 tokens");
  refused(with_tokenizer("gpt2", "qwen2").add_array("tokenizer.ggml.token_type", gguf_test::kU8, 3, "abc"), QW_INVALID_FILE, "array of int32");
  const std::string wrong_types = number(int32_t{1}) + number(int32_t{7}) + number(int32_t{1});
  refused(with_tokenizer("gpt2", "qwen2").add_array("tokenizer.ggml.token_type", gguf_test::kI32, 3, wrong_types), QW_INVALID_FILE, "expected 1 to 6, found 7");
  File twice = small_header().add("tokenizer.ggml.model", "gpt2").add("tokenizer.ggml.pre", "qwen2");
  refused(twice.add_texts("tokenizer.ggml.tokens", {"a", "a"}), QW_INVALID_FILE, "m.gguf: tokenizer.ggml.tokens: the token \"a\" stands twice");
  File merge = small_header().add("tokenizer.ggml.model", "gpt2").add("tokenizer.ggml.pre", "qwen2");
  refused(merge.add_texts("tokenizer.ggml.tokens", {"a"}).add_texts("tokenizer.ggml.merges", {"a c"}), QW_INVALID_FILE, "tokenizer.ggml.merges: merge 1");
}

TEST(GgufParts, WrongOnesAreRefused) {
  const std::string names[] = {"qwen3-parts-q8_0-00001-of-00003.gguf", "qwen3-parts-q8_0-00002-of-00003.gguf", "qwen3-parts-q8_0-00003-of-00003.gguf"};
  const Folder good = parts();
  Folder folder = good;
  folder.erase(names[1]);
  expect_refused(folder, names[0], QW_MISSING, names[1] + ": the file is missing");
  folder = good;
  folder[names[1]] = good.at(names[2]);
  expect_refused(folder, names[0], QW_INVALID_FILE, names[1] + ": by split.no and split.count it is part 3 of 3");
  folder[names[1]] = good.at(names[0]);
  expect_refused(folder, names[2], QW_INVALID_FILE, "it is part 1 of 3");
  folder = good;
  folder[names[1]] = read_file(kGoldens + "qwen3-q8_0.gguf");
  expect_refused(folder, names[0], QW_INVALID_FILE, "qwen3-parts-q8_0-00002-of-00003.gguf");
  expect_refused({{"renamed.gguf", good.at(names[1])}}, "renamed.gguf", QW_INVALID_FILE, "expected the name to end with -00002-of-00003.gguf");
}

TEST(GgufParts, ATensorThatStandsInTwoIsRefused) {
  const auto part = [](uint16_t number_of, const std::string& tensor) {
    File file = small_header();
    file.add("split.no", gguf_test::kU16, number(number_of)).add("split.count", gguf_test::kU16, number(uint16_t{2}));
    file.tensors[0].name = tensor;
    return bytes_of(file.bytes());
  };
  const auto load_both = [&](const std::string& first, const std::string& second) {
    return load({{"m-00001-of-00002.gguf", part(0, first)}, {"m-00002-of-00002.gguf", part(1, second)}}, options("m-00001-of-00002.gguf", R"("parts": "headers")"));
  };
  EXPECT_EQ(load_both("token_embd.weight", "output.weight").code, QW_OK);
  const Loaded twice = load_both("token_embd.weight", "token_embd.weight");
  EXPECT_EQ(twice.code, QW_INVALID_FILE);
  EXPECT_NE(twice.message.find("\"token_embd.weight\" stands twice"), std::string::npos) << twice.message;
}

TEST(GgufWeights, TensorsThatAreMissingOrTooManyAreRefused) {
  expect_refused({{"m.gguf", bytes_of(small_header().bytes())}}, "m.gguf", QW_MISSING, "is missing from the weights");
  Bytes file = read_file(kGoldens + "qwen3-q8_0.gguf");
  const std::string name = "blk.1.attn_q.weight";
  const auto at = std::search(file.begin(), file.end(), name.begin(), name.end());
  ASSERT_NE(at, file.end());
  at[6] = 'A';
  expect_refused({{"m.gguf", file}}, "m.gguf", QW_MISSING, "model.layers.1.self_attn.q_proj.weight is missing");
}

TEST(GgufWeights, AScaleThatIsNotFiniteIsAnErrorThatNamesTheTensor) {
  Bytes file = read_file(kGoldens + "qwen3-q8_0.gguf");
  // The scale of the last matrix's last block: three norms of 64 values follow.
  for (size_t i = 0; i < 2; ++i) file[file.size() - 3 * 64 * sizeof(float) - 34 + i] = 0xff;
  for (const char* dtype : {R"("dtype": "exact")", R"("dtype": "stored")", R"("dtype": "q4")"}) {
    expect_refused({{"m.gguf", file}}, "m.gguf", QW_NOT_FINITE, "is NaN or infinite", dtype);
  }
}

TEST(GgufWeights, AFileThatIsCutIsRefusedWhereverItIsCut) {
  const Bytes whole = read_file(kGoldens + "qwen3-q4_0.gguf");
  for (size_t length = 0; length < whole.size(); length += length < 4000 ? 409 : 10007) {
    const Folder folder = {{"m.gguf", Bytes(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(length))}};
    for (const bool knows_sizes : {true, false}) {
      EXPECT_EQ(load(folder, options("m.gguf"), {Order::kAtOnce, knows_sizes}).code, QW_INVALID_FILE) << length;
    }
  }
}

}  // namespace
}  // namespace qwasm::capi_test
