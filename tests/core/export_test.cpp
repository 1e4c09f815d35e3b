// Models as GGUF files: rows of panels in GGML's order, and whole files through the C ABI, read by a reader of the test's own.
#include <cmath>
#include <cstring>
#include <map>

#include "core/base/half.h"
#include "core/quant/ggml_row.h"
#include "tests/core/small_model.h"

namespace qwasm::capi_test {
namespace {

// ---- GGML's formats, as its documents have them

enum : uint32_t { kGgmlF32 = 0, kGgmlF16 = 1, kGgmlQ4_0 = 2, kGgmlQ8_0 = 8 };

float half_at(const uint8_t* at) {
  uint16_t bits;
  std::memcpy(&bits, at, 2);
  return f16_to_f32(bits);
}

Floats decode(uint32_t type, const uint8_t* at, int64_t count) {
  Floats values(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    float& value = values[static_cast<size_t>(i)];
    const int64_t block = i / 32, k = i % 32;
    if (type == kGgmlF32) std::memcpy(&value, at + 4 * i, 4);
    if (type == kGgmlF16) value = half_at(at + 2 * i);
    if (type == kGgmlQ8_0) value = static_cast<float>(static_cast<int8_t>(at[34 * block + 2 + k])) * half_at(at + 34 * block);
    if (type == kGgmlQ4_0) value = static_cast<float>((at[18 * block + 2 + k % 16] >> (k < 16 ? 0 : 4) & 15) - 8) * half_at(at + 18 * block);
  }
  return values;
}

// A matrix as panels, and its rows as they decode.
struct Panels {
  Panels(Format format, const Floats& weights, int64_t rows, int64_t columns) : bytes(static_cast<size_t>(matrix_bytes(format, rows, columns))) {
    for (int64_t p = 0; p < panels_of(rows); ++p) {
      encode_panel(format, weights.data() + p * kPanelRows * columns, std::min(kPanelRows, rows - p * kPanelRows), columns, bytes.data() + p * panel_bytes(format, columns));
    }
    for (int64_t row = 0; row < rows; ++row) {
      decoded.emplace_back(static_cast<size_t>(columns));
      decode_panel_row(format, bytes.data(), row, columns, decoded.back().data());
    }
  }
  Bytes bytes;
  std::vector<Floats> decoded;
};

Floats random_weights(int64_t count) {
  std::mt19937 random(7);
  Floats weights(static_cast<size_t>(count));
  for (float& w : weights) w = static_cast<float>(static_cast<int>(random() % 2001) - 1000) / 777.0f;
  return weights;
}

TEST(GgmlRow, HasTheValuesOfThePanelsRow) {
  constexpr int64_t kRows = 21, kColumns = 96;
  const Floats weights = random_weights(kRows * kColumns);
  for (const auto& [format, type] : {std::pair(Format::kQ8, kGgmlQ8_0), std::pair(Format::kQ4, kGgmlQ4_0)}) {
    const Panels panels(format, weights, kRows, kColumns);
    for (int64_t row = 0; row < kRows; ++row) {
      Bytes blocks(static_cast<size_t>(kColumns / 32 * ggml_block_bytes(format)));
      write_ggml_row(format, panels.bytes.data(), row, kColumns, blocks.data());
      EXPECT_EQ(decode(type, blocks.data(), kColumns), panels.decoded[static_cast<size_t>(row)]) << row;
    }
  }
}

// ---- whole files

struct GgufTensor {
  std::vector<int64_t> dimensions;
  uint32_t type;
  uint64_t begin;  // in the file
};

// Reads what the writer writes; whatever runs over the end fails the test.
struct GgufFile {
  explicit GgufFile(Bytes file) : bytes(std::move(file)) {
    EXPECT_EQ(number<uint32_t>(), 0x46554747u) << "GGUF";
    EXPECT_EQ(number<uint32_t>(), 3u);
    const auto tensor_count = number<uint64_t>(), key_count = number<uint64_t>();
    for (uint64_t i = 0; i < key_count; ++i) {
      const std::string key = string();
      EXPECT_FALSE(keys.contains(key)) << key << " stands twice";
      keys[key] = value(number<uint32_t>());
    }
    for (uint64_t i = 0; i < tensor_count; ++i) {
      const std::string name = string();
      GgufTensor& tensor = tensors[name];
      for (auto left = number<uint32_t>(); left > 0; --left) tensor.dimensions.push_back(number<int64_t>());
      tensor.type = number<uint32_t>();
      tensor.begin = number<uint64_t>();
    }
    const size_t data = (at + 31) / 32 * 32;
    for (auto& [name, tensor] : tensors) {
      EXPECT_EQ(tensor.begin % 32, 0u) << name;
      tensor.begin += data;
    }
  }

  Floats values(const std::string& name) const {
    const GgufTensor& tensor = tensors.at(name);
    int64_t count = 1;
    for (const int64_t dimension : tensor.dimensions) count *= dimension;
    return decode(tensor.type, bytes.data() + tensor.begin, count);
  }

  Bytes bytes;
  Json keys = Json::object();
  std::map<std::string, GgufTensor> tensors;

 private:
  const uint8_t* take(size_t size) {
    EXPECT_LE(at + size, bytes.size());
    at += size;
    return bytes.data() + at - size;
  }
  template <typename T>
  T number() {
    T value;
    std::memcpy(&value, take(sizeof value), sizeof value);
    return value;
  }
  std::string string() {
    const auto length = number<uint64_t>();
    return std::string(reinterpret_cast<const char*>(take(length)), length);
  }
  Json value(uint32_t type) {
    switch (type) {
      case 4: return number<uint32_t>();
      case 5: return number<int32_t>();
      case 6: return number<float>();
      case 7: return number<uint8_t>() != 0;
      case 8: return string();
      case 9: break;
      default: ADD_FAILURE() << "value type " << type; return nullptr;
    }
    const auto item_type = number<uint32_t>();
    Json items = Json::array();
    for (auto left = number<uint64_t>(); left > 0; --left) items.push_back(value(item_type));
    return items;
  }

  size_t at = 0;
};

struct FreeGguf {
  void operator()(qw_gguf* gguf) const { qw_gguf_free(gguf); }
};
using Gguf = std::unique_ptr<qw_gguf, FreeGguf>;

// All pieces, one after the other, and how it ended.
int32_t read_pieces(qw_gguf* gguf, Bytes* file) {
  for (;;) {
    const int32_t length = qw_gguf_next(gguf);
    if (length <= 0) return length;
    append(*file, qw_gguf_piece(gguf), static_cast<size_t>(length));
  }
}

Bytes bytes_of_export(const Engine& engine, const char* name = nullptr) {
  const Gguf gguf(qw_gguf_new(engine.get(), name));
  EXPECT_NE(gguf, nullptr) << qw_error_message();
  Bytes file;
  EXPECT_EQ(read_pieces(gguf.get(), &file), 0) << qw_error_message();
  EXPECT_EQ(static_cast<double>(file.size()), qw_gguf_bytes(gguf.get()));
  EXPECT_EQ(qw_gguf_next(gguf.get()), 0) << "the end stays the end";
  return file;
}

GgufFile export_of(const Folder& folder, const std::string& dtype, const char* name = nullptr) {
  return GgufFile(bytes_of_export(must_load(folder, R"({"dtype": ")" + dtype + "\"}"), name));
}

std::string gguf_name(std::string name) {
  const std::pair<const char*, const char*> kParts[] = {{"model.embed_tokens", "token_embd"}, {"model.norm", "output_norm"},
      {"lm_head", "output"}, {"model.layers", "blk"}, {"input_layernorm", "attn_norm"}, {"post_attention_layernorm", "ffn_norm"},
      {"self_attn.o_proj", "attn_output"}, {"self_attn.", "attn_"}, {"mlp.", "ffn_"}, {"_proj", ""}};
  for (const auto& [ours, theirs] : kParts) {
    if (const size_t at = name.find(ours); at != std::string::npos) name.replace(at, std::strlen(ours), theirs);
  }
  return name;
}

TEST(Export, KeepsFloat16ValuesOfAnExactModelBitForBit) {
  for (const char* dtype : {"F32", "F16", "BF16"}) {
    const GgufFile file = export_of(small_folder(small_config(), small_tensors(dtype)), "exact");
    const std::vector<Tensor> tensors = small_tensors("F32");  // the same numbers
    EXPECT_EQ(file.tensors.size(), tensors.size());
    for (const Tensor& tensor : tensors) {
      const std::string name = gguf_name(tensor.name);
      ASSERT_TRUE(file.tensors.contains(name)) << name;
      const GgufTensor& found = file.tensors.at(name);
      EXPECT_EQ(found.dimensions, std::vector<int64_t>(tensor.shape.rbegin(), tensor.shape.rend())) << name;
      EXPECT_EQ(found.type, tensor.shape.size() == 1 ? kGgmlF32 : kGgmlF16) << name;
      EXPECT_EQ(file.values(name), floats_of(tensor)) << name;
    }
  }
}

TEST(Export, WritesAnUntiedHeadAndNoTiedOne) {
  EXPECT_FALSE(export_of(small_folder(), "exact").tensors.contains("output.weight"));
  Json config = small_config();
  config["tie_word_embeddings"] = false;
  EXPECT_TRUE(export_of(small_folder(config, small_tensors("F32", /*with_head=*/true)), "exact").tensors.contains("output.weight"));
}

TEST(Export, WritesRowsThatAreNotWholeBlocksAsTheFloatsOfTheirPanels) {
  for (const auto& [dtype, format] : {std::pair("q8", Format::kQ8), std::pair("q4", Format::kQ4)}) {
    const GgufFile file = export_of(small_folder(), dtype);
    for (const Tensor& tensor : small_tensors()) {
      if (tensor.shape.size() == 1) continue;
      const std::string name = gguf_name(tensor.name);
      EXPECT_EQ(file.tensors.at(name).type, kGgmlF32) << name;
      Floats expected;
      for (const Floats& row : Panels(format, floats_of(tensor), tensor.shape[0], tensor.shape[1]).decoded) expected.insert(expected.end(), row.begin(), row.end());
      EXPECT_EQ(file.values(name), expected) << name;
    }
  }
}

TEST(Export, WritesWholeBlocksWithTheValuesOfTheirPanels) {
  Folder folder = golden_folder("demo");
  const std::map<std::string, Tensor> tensors = read_safetensors(folder.at("model.safetensors"));
  for (const auto& [dtype, format, type] : {std::tuple("q8", Format::kQ8, kGgmlQ8_0), std::tuple("q4", Format::kQ4, kGgmlQ4_0)}) {
    const GgufFile file = export_of(folder, dtype);
    for (const char* name : {"model.embed_tokens.weight", "model.layers.3.mlp.down_proj.weight", "model.layers.0.self_attn.k_proj.weight"}) {
      const Tensor& tensor = tensors.at(name);
      Floats weights(tensor.data.size() / 2);
      for (size_t i = 0; i < weights.size(); ++i) {
        uint16_t bits;
        std::memcpy(&bits, tensor.data.data() + 2 * i, 2);
        weights[i] = bf16_to_f32(bits);
      }
      Floats expected;
      for (const Floats& row : Panels(format, weights, tensor.shape[0], tensor.shape[1]).decoded) expected.insert(expected.end(), row.begin(), row.end());
      EXPECT_EQ(file.tensors.at(gguf_name(name)).type, type);
      EXPECT_EQ(file.values(gguf_name(name)), expected) << name;
    }
  }
}

// Root of Σ (found - expected)² / Σ expected².
double relative_error(const Floats& found, const Floats& expected) {
  double error = 0, all = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    error += std::pow(found[i] - expected[i], 2);
    all += std::pow(expected[i], 2);
  }
  return std::sqrt(error / all);
}

// Of every family: permuted heads, biases, factors of rope, layers without it, a window, rows that are not whole blocks.
constexpr const char* kFamilies[] = {"qwen3", "qwen3-yarn", "qwen3-untied-f16", "qwen3-15-heads", "qwen2", "qwen2-14-heads", "llama3-rope", "llama-9-heads", "mistral-15-heads", "smollm3-nope"};

TEST(Export, IsTheSameModelWhenItIsLoadedBack) {
  const Ids ids = {3, 50, 99, 7, 200, 12, 45, 8, 1, 130};
  for (const char* name : kFamilies) {
    for (const char* dtype : {"exact", "q8", "q4"}) {
      const Engine engine = must_load(golden_folder(name), R"({"kv": "f32", "dtype": ")" + std::string(dtype) + "\"}");
      const GgufFile file(bytes_of_export(engine));
      const std::string as = dtype == std::string("exact") ? "exact" : "stored";
      const Engine back = must_load({{"m.gguf", file.bytes}}, R"({"gguf": "m.gguf", "kv": "f32", "dtype": ")" + as + "\"}");
      ASSERT_NE(back, nullptr) << name << ' ' << dtype;
      const Floats expected = Sequence(engine).logits(ids, 10), found = Sequence(back).logits(ids, 10);
      const bool whole_blocks = std::none_of(file.tensors.begin(), file.tensors.end(), [](const auto& entry) { return entry.second.type == kGgmlF32 && entry.second.dimensions.size() > 1; });
      if (as == "stored" && whole_blocks) {
        EXPECT_TRUE(same_bits(found, expected)) << name << ' ' << dtype;
        EXPECT_EQ(bytes_of_export(back), file.bytes) << name << ' ' << dtype;
      } else {
        // float16 keeps all but bfloat16's smallest numbers; and what was a panel is multiplied in float32 now, not in whole numbers.
        EXPECT_LT(relative_error(found, expected), as == "exact" ? 1e-5 : 0.03) << name << ' ' << dtype;
      }
    }
  }
}

TEST(Export, RefusesWeightsBeyondFloat16ByName) {
  std::vector<Tensor> tensors = small_tensors();
  const float large = 65520;
  std::memcpy(find(tensors, "model.layers.1.mlp.up_proj.weight").data.data() + 4 * (kSmallHidden + 3), &large, 4);
  const Engine engine = must_load(small_folder(small_config(), tensors));
  const Gguf gguf(qw_gguf_new(engine.get(), nullptr));
  ASSERT_NE(gguf, nullptr);
  Bytes file;
  EXPECT_EQ(read_pieces(gguf.get(), &file), -QW_UNSUPPORTED);
  for (const char* part : {"model.layers.1.mlp.up_proj.weight", "65520", "row 1", "column 3"}) {
    EXPECT_NE(std::string(qw_error_message()).find(part), std::string::npos) << part << " in: " << qw_error_message();
  }
}

TEST(Export, TellsTheShapesAndThatThereIsNoTokenizer) {
  const GgufFile file = export_of(small_folder(), "exact", "small one");
  const Json expected = {{"general.architecture", "qwen3"}, {"general.type", "model"}, {"general.name", "small one"}, {"general.alignment", 32},
                         {"general.quantization_version", 2}, {"general.file_type", 1}, {"qwen3.vocab_size", kSmallVocab},
                         {"qwen3.block_count", kSmallLayers}, {"qwen3.context_length", 64}, {"qwen3.embedding_length", kSmallHidden},
                         {"qwen3.feed_forward_length", kSmallFfn}, {"qwen3.attention.head_count", kSmallHeads},
                         {"qwen3.attention.head_count_kv", kSmallKvHeads}, {"qwen3.attention.key_length", kSmallHeadDim},
                         {"qwen3.attention.value_length", kSmallHeadDim}, {"qwen3.rope.dimension_count", kSmallHeadDim},
                         {"qwen3.attention.layer_norm_rms_epsilon", 1e-6f}, {"qwen3.rope.freq_base", 10000.0f},
                         {"tokenizer.ggml.model", "no_vocab"}};
  EXPECT_EQ(file.keys, expected) << file.keys.dump();
}

TEST(Export, TellsYarnAndRefusesWhatGgufHasNoWordsFor) {
  Json config = small_config();
  config["rope_scaling"] = {{"rope_type", "yarn"}, {"factor", 4.0}, {"original_max_position_embeddings", 16}, {"attention_factor", 2.0}};
  const Json keys = export_of(small_folder(config), "exact").keys;
  EXPECT_EQ(keys["qwen3.rope.scaling.type"], "yarn");
  EXPECT_EQ(keys["qwen3.rope.scaling.factor"], 4.0);
  EXPECT_EQ(keys["qwen3.rope.scaling.original_context_length"], 16);
  EXPECT_NEAR(keys["qwen3.rope.scaling.attn_factor"].get<double>(), 2 / (0.1 * std::log(4.0) + 1), 1e-6);
  const Engine yarn = must_load(small_folder(config)), back = must_load({{"m.gguf", bytes_of_export(yarn)}}, R"({"gguf": "m.gguf", "dtype": "exact"})");
  EXPECT_LT(relative_error(Sequence(back).logits(small_prompt(), 12), Sequence(yarn).logits(small_prompt(), 12)), 1e-5);
  config["rope_scaling"]["mscale"] = 0.7;
  const Engine engine = must_load(small_folder(config));
  EXPECT_EQ(qw_gguf_new(engine.get(), nullptr), nullptr);
  EXPECT_EQ(qw_error_code(), QW_UNSUPPORTED);
  EXPECT_NE(std::string(qw_error_message()).find("mscale"), std::string::npos);
}

TEST(Export, TellsTheTokenizerAndPadsItToTheEmbedding) {
  const Folder folder = golden_folder("demo");
  const Json keys = export_of(folder, "q4").keys, tokenizer = Json::parse(text_of(folder.at("tokenizer.json")));
  const Json &tokens = keys["tokenizer.ggml.tokens"], &types = keys["tokenizer.ggml.token_type"], &merges = keys["tokenizer.ggml.merges"];
  ASSERT_EQ(tokens.size(), 2048u);
  ASSERT_EQ(types.size(), 2048u);
  std::vector<std::string> expected(2048);
  std::vector<int> expected_types(2048, 5);
  for (size_t id = 0; id < 2048; ++id) expected[id] = "[PAD" + std::to_string(id) + "]";
  for (const auto& [token, id] : tokenizer["model"]["vocab"].items()) {
    expected[id.get<size_t>()] = token;
    expected_types[id.get<size_t>()] = 1;
  }
  for (const Json& added : tokenizer["added_tokens"]) {
    expected[added["id"].get<size_t>()] = added["content"].get<std::string>();
    expected_types[added["id"].get<size_t>()] = added["special"].get<bool>() ? 3 : 4;
  }
  EXPECT_EQ(tokens, Json(expected));
  EXPECT_EQ(types, Json(expected_types));
  ASSERT_EQ(merges.size(), tokenizer["model"]["merges"].size());
  for (size_t i = 0; i < merges.size(); ++i) {
    const Json& pair = tokenizer["model"]["merges"][i];
    EXPECT_EQ(merges[i], pair.is_string() ? pair.get<std::string>() : pair[0].get<std::string>() + ' ' + pair[1].get<std::string>());
  }
  EXPECT_EQ(keys["tokenizer.ggml.eos_token_id"], 2018);
  EXPECT_EQ(keys["tokenizer.ggml.eot_token_id"], 2016);
  EXPECT_EQ(keys["tokenizer.ggml.bos_token_id"], 2016);
  EXPECT_EQ(keys["tokenizer.ggml.padding_token_id"], 2016);
  EXPECT_EQ(keys["tokenizer.ggml.add_bos_token"], false);
  EXPECT_EQ(keys["tokenizer.chat_template"], Json::parse(text_of(folder.at("tokenizer_config.json")))["chat_template"]);
}

TEST(Export, KeepsNamedChatTemplates) {
  Folder folder = golden_folder("demo");
  Json settings = Json::parse(text_of(folder.at("tokenizer_config.json")));
  settings["chat_template"] = Json::array({{{"name", "default"}, {"template", "a"}}, {{"name", "rag"}, {"template", "b"}}, {{"name", "tool_use"}, {"template", "c"}}});
  folder["tokenizer_config.json"] = bytes_of(settings.dump());
  const Json keys = export_of(folder, "q4").keys;
  EXPECT_EQ(keys["tokenizer.chat_template"], "a");
  EXPECT_EQ(keys["tokenizer.chat_templates"], Json::array({"rag", "tool_use"}));
  EXPECT_EQ(keys["tokenizer.chat_template.rag"], "b");
  EXPECT_EQ(keys["tokenizer.chat_template.tool_use"], "c");
}

TEST(Export, NeedsALoadedModelWithItsWeights) {
  const Engine fresh(qw_engine_new("{}")), tokenizer = must_load(golden_folder("demo"), R"({"parts": "tokenizer"})");
  for (const Engine* engine : {&fresh, &tokenizer}) {
    EXPECT_EQ(qw_gguf_new(engine->get(), nullptr), nullptr);
    EXPECT_EQ(qw_error_code(), QW_WRONG_STATE);
  }
  EXPECT_EQ(qw_gguf_new(nullptr, nullptr), nullptr);
  EXPECT_EQ(qw_error_code(), QW_INVALID_ARGUMENT);
  EXPECT_EQ(qw_gguf_next(nullptr), -QW_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace qwasm::capi_test
