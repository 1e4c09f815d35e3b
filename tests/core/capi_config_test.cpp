// config.json and generation_config.json through the C ABI: heads and ties, both spellings of rope, families, end
// tokens, hostile fields.
#include "tests/core/small_model.h"

namespace qwasm::capi_test {
namespace {

void expect_refused(const Folder& folder, int32_t code, const std::vector<std::string>& named) {
  const Loaded loaded = load(folder);
  EXPECT_EQ(loaded.code, code) << loaded.message;
  for (const std::string& part : named)
    EXPECT_NE(loaded.message.find(part), std::string::npos) << part << " in: " << loaded.message;
}

// ---- the tied head

TEST(TiedHead, IsTheEmbeddingWhetherOrNotTheFileHoldsAnotherHead) {
  const Floats without = small_logits(small_folder(small_config(), small_tensors("F32", false)));
  const Floats with = small_logits(small_folder(small_config(), small_tensors("F32", true)));
  ASSERT_FALSE(without.empty());
  EXPECT_TRUE(same_bits(with, without));
}

TEST(TiedHead, IsNeverAskedFor) {
  // Its bytes are the last of the file: a file that ends before them would fail, were they wanted.
  Folder folder = small_folder(small_config(), small_tensors("F32", true));
  Bytes& file = folder["model.safetensors"];
  const size_t head = 4u * kSmallVocab * kSmallHidden;
  std::fill(file.end() - static_cast<long>(head), file.end(), 0xff);  // NaNs
  EXPECT_TRUE(same_bits(small_logits(folder), small_logits(small_folder())));
  const Engine engine = must_load(folder);
  ASSERT_NE(engine, nullptr);
  size_t expected = 0;
  for (const Tensor& tensor : small_tensors()) expected += tensor.data.size();
  EXPECT_EQ(qw_load_bytes(engine.get()), static_cast<double>(expected));
}

TEST(UntiedHead, IsReadFromTheFile) {
  Json config = small_config();
  config["tie_word_embeddings"] = false;
  const Floats untied = small_logits(small_folder(config, small_tensors("F32", true)));
  ASSERT_FALSE(untied.empty());
  EXPECT_FALSE(same_bits(untied, small_logits(small_folder())));

  std::vector<Tensor> same = small_tensors("F32", true);
  find(same, "lm_head.weight").data = find(same, "model.embed_tokens.weight").data;
  EXPECT_TRUE(same_bits(small_logits(small_folder(config, same)), small_logits(small_folder())));
}

TEST(UntiedHead, IsMissedWhereTheFileHasNone) {
  Json config = small_config();
  config["tie_word_embeddings"] = false;
  expect_refused(small_folder(config), QW_MISSING, {"lm_head.weight"});
  config.erase("tie_word_embeddings");  // transformers' default for Qwen3 is false
  expect_refused(small_folder(config), QW_MISSING, {"lm_head.weight"});
}

TEST(HeadDim, IsItsOwnFieldAndNotHiddenOverHeads) {
  // The small model has 3 heads of 8 in a hidden size of 16. With the quotient, its shapes would not fit.
  EXPECT_FALSE(small_logits(small_folder()).empty());
  Json config = small_config();
  config["head_dim"] = 4;
  expect_refused(small_folder(config), QW_INVALID_FILE, {"self_attn", "model.safetensors"});
}

// ---- rope

Floats logits_with_rope(const char* fields) {
  Json config = small_config();
  config.erase("rope_theta");
  config.update(Json::parse(fields));
  return small_logits(small_folder(config));
}

TEST(Rope, IsReadAlikeInItsOldAndNewSpelling) {
  const Floats expected = logits_with_rope(R"({"rope_theta": 5000.0})");
  ASSERT_FALSE(expected.empty());
  for (const char* same : {R"({"rope_theta": 5000, "rope_scaling": null})",
                           R"({"rope_parameters": {"rope_theta": 5000.0, "rope_type": "default"}})",
                           R"({"rope_parameters": {"rope_theta": 5000.0}})",
                           R"({"rope_theta": 5000.0, "rope_scaling": {"type": "default"}})",
                           R"({"rope_theta": 5000.0, "rope_scaling": {"rope_type": "default"}})"}) {
    EXPECT_TRUE(same_bits(logits_with_rope(same), expected)) << same;
  }
  EXPECT_FALSE(same_bits(logits_with_rope(R"({"rope_theta": 6000.0})"), expected)) << "theta is read at the top level";
  EXPECT_FALSE(same_bits(logits_with_rope(R"({"rope_parameters": {"rope_theta": 6000.0}})"), expected))
      << "and inside rope_parameters";
}

TEST(Rope, ReadsYarnAlikeInEverySpelling) {
  const Floats expected = logits_with_rope(
      R"({"rope_parameters": {"rope_type": "yarn", "rope_theta": 5000.0, "factor": 4.0, "original_max_position_embeddings": 16}})");
  ASSERT_FALSE(expected.empty());
  for (const char* key : {"type", "rope_type"}) {
    const std::string same = std::string(R"({"rope_theta": 5000.0, "rope_scaling": {")") + key +
                             R"(": "yarn", "factor": 4.0, "original_max_position_embeddings": 16}})";
    EXPECT_TRUE(same_bits(logits_with_rope(same.c_str()), expected)) << same;
  }
  EXPECT_FALSE(same_bits(logits_with_rope(R"({"rope_theta": 5000.0})"), expected)) << "yarn is not ignored";
}

TEST(Rope, RefusesAScalingThatItDoesNotImplementByName) {
  for (const char* fields :
       {R"({"rope_scaling": {"type": "longrope", "factor": 2.0}})", R"({"rope_scaling": {"rope_type": "wavy"}})",
        R"({"rope_parameters": {"rope_type": "longrope", "rope_theta": 1e4, "short_factor": [1], "long_factor": [2]}})",
        R"({"rope_parameters": {"rope_type": "wavy", "rope_theta": 1e4}})"}) {
    Json config = small_config();
    config.update(Json::parse(fields));
    expect_refused(small_folder(config), QW_UNSUPPORTED,
                   {"config.json", std::string(fields).find("wavy") != std::string::npos ? "wavy" : "longrope"});
  }
}

TEST(Rope, ReadsLlama3AlikeInBothSpellings) {
  const Floats expected = logits_with_rope(
      R"({"rope_parameters": {"rope_type": "llama3", "rope_theta": 5000.0, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 16}})");
  ASSERT_FALSE(expected.empty());
  EXPECT_TRUE(same_bits(logits_with_rope(R"({"rope_theta": 5000.0, "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
                                             "high_freq_factor": 4.0, "original_max_position_embeddings": 16}})"),
                        expected));
  EXPECT_FALSE(same_bits(logits_with_rope(R"({"rope_theta": 5000.0})"), expected)) << "llama3 is not ignored";
}

TEST(Rope, MissesWhatLlama3Needs) {
  for (const char* field : {"factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"}) {
    Json config = small_config();
    config["rope_scaling"] = {{"rope_type", "llama3"}, {"factor", 8}, {"low_freq_factor", 1}, {"high_freq_factor", 4}, {"original_max_position_embeddings", 16}};
    config["rope_scaling"].erase(field);
    expect_refused(small_folder(config), QW_MISSING, {"config.json", "rope_scaling", field});
    config["rope_scaling"][field] = 0;
    expect_refused(small_folder(config), QW_INVALID_FILE, {"config.json", "rope_scaling", field});
  }
  Json config = small_config();
  config["rope_scaling"] = {{"rope_type", "llama3"}, {"factor", 8}, {"low_freq_factor", 4}, {"high_freq_factor", 4}, {"original_max_position_embeddings", 16}};
  expect_refused(small_folder(config), QW_INVALID_FILE, {"high_freq_factor"});
}

// ---- families

// The small model as another family has it.
Json family_config(const char* model_type, const char* architecture) {
  Json config = small_config();
  config["model_type"] = model_type;
  config["architectures"] = {architecture};
  return config;
}

std::vector<Tensor> without(std::vector<Tensor> tensors, const std::string& part) {
  std::erase_if(tensors, [&](const Tensor& tensor) { return tensor.name.find(part) != std::string::npos; });
  return tensors;
}

std::vector<Tensor> llama_tensors() { return without(without(small_tensors(), "q_norm"), "k_norm"); }

void add_bias(std::vector<Tensor>& tensors, const std::string& projection, int64_t rows, float step) {
  for (int layer = 0; layer < kSmallLayers; ++layer) {
    Tensor bias{"model.layers." + std::to_string(layer) + ".self_attn." + projection + ".bias", "F32", {rows}, {}};
    for (int64_t i = 0; i < rows; ++i) append_value(bias.data, "F32", step * static_cast<float>(i % 7 + 1));
    tensors.push_back(bias);
  }
}

std::vector<Tensor> qwen2_tensors(float step) {
  std::vector<Tensor> tensors = llama_tensors();
  add_bias(tensors, "q_proj", kSmallHeads * kSmallHeadDim, step);
  add_bias(tensors, "k_proj", kSmallKvHeads * kSmallHeadDim, step);
  add_bias(tensors, "v_proj", kSmallKvHeads * kSmallHeadDim, step);
  return tensors;
}

TEST(Family, Qwen2IsLlamaWithBiases) {
  const Floats llama = small_logits(small_folder(family_config("llama", "LlamaForCausalLM"), llama_tensors()));
  const Json qwen2 = family_config("qwen2", "Qwen2ForCausalLM");
  ASSERT_FALSE(llama.empty());
  EXPECT_TRUE(same_bits(small_logits(small_folder(qwen2, qwen2_tensors(0))), llama));
  EXPECT_FALSE(same_bits(small_logits(small_folder(qwen2, qwen2_tensors(0.25f))), llama));
  for (const char* projection : {"q_proj", "k_proj", "v_proj"}) {
    const std::string bias = std::string(projection) + ".bias";
    expect_refused(small_folder(qwen2, without(qwen2_tensors(0), bias)), QW_MISSING, {bias});
  }
  // Fields of a window that is switched off.
  Json off = qwen2;
  off.update(Json::parse(R"({"use_sliding_window": false, "sliding_window": 8, "max_window_layers": 1})"));
  EXPECT_TRUE(same_bits(small_logits(small_folder(off, qwen2_tensors(0))), llama));
}

TEST(Family, LlamaRefusesWhatItDoesNotHaveByName) {
  const Json llama = family_config("llama", "LlamaForCausalLM");
  expect_refused(small_folder(llama), QW_UNSUPPORTED, {"k_norm", "LlamaForCausalLM"});
  expect_refused(small_folder(llama, qwen2_tensors(0)), QW_UNSUPPORTED, {".bias", "LlamaForCausalLM"});
  for (const char* field : {"attention_bias", "mlp_bias"}) {
    Json config = llama;
    config[field] = true;
    expect_refused(small_folder(config, llama_tensors()), QW_UNSUPPORTED, {"config.json", field});
  }
}

TEST(Family, SharesHiddenSizeAmongTheHeadsWhereThereIsNoHeadDim) {
  Json config = family_config("llama", "LlamaForCausalLM");
  config.erase("head_dim");
  expect_refused(small_folder(config, llama_tensors()), QW_INVALID_FILE, {"hidden_size", "num_attention_heads (3)", "16"});
  config["num_attention_heads"] = 2;  // 16 / 2 = 8, but the file's q_proj has 24 rows
  expect_refused(small_folder(config, llama_tensors()), QW_INVALID_FILE, {"q_proj", "(16, 16)", "(24, 16)"});
  config["num_attention_heads"] = 16;
  expect_refused(small_folder(config, llama_tensors()), QW_INVALID_FILE, {"head_dim", "even"});
}

TEST(Family, SmolLM3TurnsPositionsInEveryLayerButEachFourthOrAsToldOneByOne) {
  const auto logits_with = [](const char* fields) {
    Json config = family_config("smollm3", "SmolLM3ForCausalLM");
    config.update(Json::parse(fields));
    return small_logits(small_folder(config, llama_tensors()));
  };
  const Floats llama = small_logits(small_folder(family_config("llama", "LlamaForCausalLM"), llama_tensors()));
  const Floats second = logits_with(R"({"no_rope_layers": [1, 0]})");
  ASSERT_FALSE(second.empty());
  EXPECT_TRUE(same_bits(logits_with("{}"), llama)) << "of two layers none is a fourth";
  EXPECT_TRUE(same_bits(logits_with(R"({"no_rope_layers": [1, 1]})"), llama));
  EXPECT_FALSE(same_bits(second, llama));
  EXPECT_TRUE(same_bits(logits_with(R"({"no_rope_layer_interval": 2})"), second));
  EXPECT_TRUE(same_bits(logits_with(R"({"no_rope_layers": null, "no_rope_layer_interval": 2})"), second));
  EXPECT_FALSE(same_bits(logits_with(R"({"no_rope_layers": [0, 1]})"), second));
  for (const char* wrong : {"[1]", "[1, 1, 1]", "[1, 2]", "[1, \"0\"]", "{}"}) {
    Json config = family_config("smollm3", "SmolLM3ForCausalLM");
    config["no_rope_layers"] = Json::parse(wrong);
    expect_refused(small_folder(config, llama_tensors()), QW_INVALID_FILE, {"config.json", "no_rope_layers"});
  }
}

TEST(Family, MistralRunsAsFarAsItsWindowReaches) {
  Json config = family_config("mistral", "MistralForCausalLM");
  config["sliding_window"] = 24;
  const Folder folder = small_folder(config, llama_tensors());
  const Engine engine = must_load(folder);
  ASSERT_NE(engine, nullptr);
  EXPECT_EQ(info_of(engine.get())["context_length"], 24) << "no longer than the window unless it is asked for";
  EXPECT_TRUE(same_bits(small_logits(folder), small_logits(small_folder(family_config("llama", "LlamaForCausalLM"), llama_tensors()))));

  const Loaded beyond = load(folder, R"({"dtype": "exact", "context_length": 25})");
  EXPECT_EQ(beyond.code, QW_UNSUPPORTED);
  for (const char* named : {"sliding_window", "24", "25"}) EXPECT_NE(beyond.message.find(named), std::string::npos) << beyond.message;

  config["sliding_window"] = nullptr;
  const Engine unlimited = must_load(small_folder(config, llama_tensors()), R"({"dtype": "exact", "context_length": 25})");
  EXPECT_EQ(info_of(unlimited.get())["context_length"], 25);
  config.erase("sliding_window");  // 4096, says transformers
  EXPECT_EQ(load(small_folder(config, llama_tensors()), R"({"context_length": 4097})").code, QW_UNSUPPORTED);
}

// config.json of models that are not implemented, whole.
TEST(Family, RefusesItsMoreDistantNeighboursByName) {
  for (const auto& [name, model_type] : {std::pair("gemma3", "gemma3_text"), std::pair("qwen3.5", "qwen3_5_text")}) {
    const Loaded loaded = load({{"config.json", read_file(std::string("tests/golden/configs-refused/") + name + "/config.json")}});
    EXPECT_EQ(loaded.code, QW_UNSUPPORTED);
    EXPECT_NE(loaded.message.find(model_type), std::string::npos) << loaded.message;
  }
}

// ---- end tokens

Json end_tokens(const char* generation_config, const char* of_config) {
  Json config = small_config();
  config["eos_token_id"] = Json::parse(of_config);
  Folder folder = small_folder(config);
  if (generation_config) folder["generation_config.json"] = bytes_of(generation_config);
  const Engine engine = must_load(folder);
  return engine ? info_of(engine.get())["eos_token_ids"] : Json();
}

TEST(EndTokens, ComeFromGenerationConfigFirstAndFromConfigOtherwise) {
  EXPECT_EQ(end_tokens(R"({"eos_token_id": [7, 3, 5]})", "9"), Json::parse("[7, 3, 5]"));
  EXPECT_EQ(end_tokens(R"({"eos_token_id": 7})", "[9, 8]"), Json::parse("[7]"));
  EXPECT_EQ(end_tokens(R"({"temperature": 0.6})", "[9, 8]"), Json::parse("[9, 8]"));
  EXPECT_EQ(end_tokens(R"({"eos_token_id": null})", "9"), Json::parse("[9]"));
  EXPECT_EQ(end_tokens(nullptr, "9"), Json::parse("[9]"));
  EXPECT_EQ(end_tokens(nullptr, "null"), Json::parse("[]"));
}

// ---- hostile fields

TEST(Config, RefusesFieldsOfAWrongTypeOrSizeByName) {
  const std::vector<std::pair<const char*, const char*>> wrong = {{"hidden_size", "\"16\""},
                                                                  {"hidden_size", "-16"},
                                                                  {"hidden_size", "0"},
                                                                  {"hidden_size", "16.5"},
                                                                  {"hidden_size", "1e99"},
                                                                  {"hidden_size", "null"},
                                                                  {"hidden_size", "[]"},
                                                                  {"vocab_size", "9223372036854775807"},
                                                                  {"vocab_size", "4294967296"},
                                                                  {"vocab_size", "true"},
                                                                  {"num_hidden_layers", "0"},
                                                                  {"num_hidden_layers", "2147483648"},
                                                                  {"num_attention_heads", "{}"},
                                                                  {"num_key_value_heads", "2"},
                                                                  {"num_key_value_heads", "0"},
                                                                  {"head_dim", "7"},
                                                                  {"head_dim", "-8"},
                                                                  {"intermediate_size", "\"\""},
                                                                  {"rms_norm_eps", "\"small\""},
                                                                  {"rms_norm_eps", "-1"},
                                                                  {"rope_theta", "0"},
                                                                  {"rope_theta", "[1]"},
                                                                  {"eos_token_id", "\"</s>\""},
                                                                  {"eos_token_id", "-2"},
                                                                  {"rope_scaling", "3"},
                                                                  {"tie_word_embeddings", "\"no\""},
                                                                  {"max_position_embeddings", "-1"}};
  for (const auto& [field, value] : wrong) {
    Json config = small_config();
    config[field] = Json::parse(value);
    const Loaded loaded = load(small_folder(config));
    EXPECT_TRUE(loaded.code == QW_INVALID_FILE || loaded.code == QW_MISSING)
        << field << " " << value << ": " << loaded.code << loaded.message;
    EXPECT_NE(loaded.message.find("config.json"), std::string::npos) << loaded.message;
    EXPECT_NE(loaded.message.find(field), std::string::npos) << field << " in: " << loaded.message;
  }
}

TEST(Config, RefusesWhatWouldChangeTheArithmetic) {
  const std::vector<std::pair<const char*, const char*>> other = {
      {"model_type", "\"gemma3_text\""},
      {"architectures", "[\"Qwen3ForSequenceClassification\"]"},
      {"hidden_act", "\"gelu\""},
      {"hidden_activation", "\"gelu_pytorch_tanh\""},
      {"attn_logit_softcapping", "50.0"},
      {"final_logit_softcapping", "30.0"},
      {"query_pre_attn_scalar", "256"},
      {"residual_multiplier", "0.22"},
      {"partial_rotary_factor", "0.5"},
      {"use_bidirectional_attention", "true"},
      {"quantization_config", "{\"bits\": 4}"},
      {"attention_bias", "true"},
      {"use_sliding_window", "true"},
      {"layer_types", "[\"full_attention\", \"sliding_attention\"]"}};
  for (const auto& [field, value] : other) {
    Json config = small_config();
    config[field] = Json::parse(value);
    expect_refused(small_folder(config), QW_UNSUPPORTED, {"config.json", field});
  }
}

TEST(Config, MustBeThere) {
  expect_refused({{"model.safetensors", safetensors(small_tensors())}}, QW_MISSING, {"config.json"});
  expect_refused({{"config.json", bytes_of(small_config().dump())}}, QW_MISSING, {"model.safetensors"});
}

TEST(Config, IsRefusedWhenCutAtAnyLength) {
  for (const char* name : {"qwen3", "qwen3-old-config", "qwen3-yarn", "llama3-rope", "smollm3-nope"}) {
    const Bytes whole = golden_folder(name)["config.json"];
    const size_t last_brace = text_of(whole).rfind('}');
    for (size_t length = 0; length <= last_brace; ++length) {
      const Loaded loaded = load({{"config.json", Bytes(whole.begin(), whole.begin() + static_cast<long>(length))}});
      ASSERT_EQ(loaded.code, QW_INVALID_FILE) << name << " cut at " << length << ": " << loaded.message;
      ASSERT_NE(loaded.message.find("config.json"), std::string::npos) << loaded.message;
    }
  }
}

TEST(Config, IsRefusedWhenItIsNoJsonObject) {
  for (const std::string& text :
       {std::string("[]"), std::string("null"), std::string("<!doctype html>"), std::string("{\"a\": \"\xff\"}"),
        std::string("version https://git-lfs.github.com/spec/v1"), std::string(200000, '['), std::string("{}{}")}) {
    const Loaded loaded = load({{"config.json", bytes_of(text)}});
    EXPECT_EQ(loaded.code, QW_INVALID_FILE) << text.substr(0, 40) << loaded.message;
  }
}

}  // namespace
}  // namespace qwasm::capi_test
