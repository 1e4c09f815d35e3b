// Weight files through the C ABI: any order of pushes, stored types, shards, cut and hostile safetensors, NaN.
#include <cmath>
#include <limits>

#include "tests/core/small_model.h"

namespace qwasm::capi_test {
namespace {

Folder with_weights(const Bytes& file) {
  return {{"config.json", bytes_of(small_config().dump())}, {"model.safetensors", file}};
}

// A field that is absent or null is "missing", of another type or value "invalid".
constexpr int32_t kInvalidOrMissing = -1;

void expect_refused(const Folder& folder, int32_t code, const std::vector<std::string>& named,
                    const std::string& what) {
  for (const bool knows_sizes : {true, false}) {
    const Loaded loaded = load(folder, kExact, {Order::kAtOnce, knows_sizes});
    if (code == kInvalidOrMissing) {
      EXPECT_TRUE(loaded.code == QW_INVALID_FILE || loaded.code == QW_MISSING) << what << ": " << loaded.message;
    } else {
      EXPECT_EQ(loaded.code, code) << what << ": " << loaded.message;
    }
    for (const std::string& part : named)
      EXPECT_NE(loaded.message.find(part), std::string::npos) << part << " in: " << loaded.message;
    EXPECT_LT(loaded.largest_want, 128e6) << what << ": a large range was wanted before the header was checked";
  }
}

// ---- transport

TEST(Pushes, InAnyOrderGiveTheSameModel) {
  for (const char* name : {"qwen3", "qwen3-sharded-f32", "demo"}) {
    const Folder folder = golden_folder(name);
    const Engine engine = must_load(folder);
    ASSERT_NE(engine, nullptr);
    const Ids ids = {3, 50, 99, 7, 300};
    const Floats expected = Sequence(engine).logits(ids, 5);
    for (const Order order : {Order::kReverse, Order::kShuffled}) {
      for (const bool knows_sizes : {true, false}) {
        const Engine other = must_load(folder, kExact, {order, knows_sizes});
        ASSERT_NE(other, nullptr);
        EXPECT_TRUE(same_bits(Sequence(other).logits(ids, 5), expected)) << name;
      }
    }
  }
}

TEST(Pushes, AreRefusedForWantsThatWereNotHandedOutOrAreAnswered) {
  const Engine engine(qw_engine_new("{}"));
  ASSERT_NE(engine, nullptr);
  EXPECT_EQ(qw_push(engine.get(), 12345, "x", 1, 1), -QW_INVALID_ARGUMENT);
  EXPECT_STRNE(qw_error_message(), "");
}

TEST(Pushes, AfterAFailureAreAllRefused) {
  const Engine engine(qw_engine_new("{}"));
  ASSERT_NE(engine, nullptr);
  qw_want want;
  ASSERT_EQ(qw_next_want(engine.get(), &want), QW_WANT_FILLED);
  ASSERT_STREQ(want.file, "config.json");
  EXPECT_EQ(qw_push(engine.get(), want.id, "nonsense", 8, 8), -QW_INVALID_FILE);
  EXPECT_LT(qw_next_want(engine.get(), &want), 0);
  EXPECT_EQ(Session(qw_session_new(engine.get())), nullptr);
}

TEST(StoredTypes, OfTheSameNumbersGiveTheSameBits) {
  const Floats f32 = small_logits(small_folder(small_config(), small_tensors("F32")));
  ASSERT_FALSE(f32.empty());
  EXPECT_TRUE(same_bits(small_logits(small_folder(small_config(), small_tensors("BF16"))), f32));
  EXPECT_TRUE(same_bits(small_logits(small_folder(small_config(), small_tensors("F16"))), f32));
  std::vector<Tensor> mixed = small_tensors("BF16");
  const std::vector<Tensor> halves = small_tensors("F16"), singles = small_tensors("F32");
  for (size_t i = 0; i < mixed.size(); ++i) mixed[i] = i % 3 == 0 ? mixed[i] : i % 3 == 1 ? halves[i] : singles[i];
  EXPECT_TRUE(same_bits(small_logits(small_folder(small_config(), mixed)), f32));
}

TEST(StoredTypes, ThatAreNotReadAreRefusedByName) {
  std::vector<Tensor> tensors = small_tensors("BF16");
  Tensor& norm = find(tensors, "model.norm.weight");
  norm.dtype = "F8_E4M3";
  norm.data.resize(norm.data.size() / 2);
  expect_refused(small_folder(small_config(), tensors), QW_UNSUPPORTED,
                 {"model.safetensors", "model.norm.weight", "F8_E4M3"}, "float8");
}

// ---- NaN and infinity

TEST(NotFinite, WeightsAreAnErrorAndNeverTokens) {
  for (const char* dtype : {"F32", "BF16", "F16"}) {
    for (const float value : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
      for (const char* name :
           {"model.embed_tokens.weight", "model.norm.weight", "model.layers.1.self_attn.q_proj.weight",
            "model.layers.0.self_attn.k_norm.weight", "model.layers.0.mlp.down_proj.weight"}) {
        std::vector<Tensor> tensors = small_tensors(dtype);
        Bytes& data = find(tensors, name).data;
        const bool nan = std::isnan(value);
        if (std::string(dtype) == "F32") {
          std::memcpy(data.data() + 8, &value, 4);
        } else {
          const uint16_t bits = std::string(dtype) == "F16" ? (nan ? 0x7e00 : 0x7c00) : (nan ? 0x7fc0 : 0x7f80);
          std::memcpy(data.data() + 8, &bits, 2);
        }
        const Loaded loaded = load(small_folder(small_config(), tensors));
        EXPECT_EQ(loaded.code, QW_NOT_FINITE) << dtype << " " << name << " " << value;
        EXPECT_NE(loaded.message.find(name), std::string::npos) << loaded.message;
      }
    }
  }
}

TEST(NotFinite, LogitsOfFiniteWeightsAreAnErrorToo) {
  std::vector<Tensor> tensors = small_tensors("F32");
  for (const char* name : {"model.layers.1.mlp.gate_proj.weight", "model.layers.1.mlp.up_proj.weight",
                           "model.layers.1.mlp.down_proj.weight"}) {
    const float huge = 3e38f;
    std::memcpy(find(tensors, name).data.data(), &huge, 4);
  }
  const Engine engine = must_load(small_folder(small_config(), tensors));
  ASSERT_NE(engine, nullptr);
  const Session session(qw_session_new(engine.get()));
  const Ids ids = small_prompt();
  ASSERT_EQ(qw_set_prompt(session.get(), ids.data(), ids.size()), 0);
  int32_t status = qw_prefill(session.get(), 100, 0);
  if (status >= 0) status = qw_step(session.get());
  EXPECT_EQ(status, -QW_NOT_FINITE) << qw_error_message();
}

// ---- safetensors that are cut

TEST(Safetensors, CutAnywhereInTheHeaderIsRefused) {
  for (const char* name : {"qwen3", "qwen3-tied-with-head"}) {
    Folder folder = golden_folder(name);
    const Bytes whole = folder["model.safetensors"];
    uint64_t header = 0;
    std::memcpy(&header, whole.data(), 8);
    for (size_t length = 0; length < 8 + header; ++length) {
      folder["model.safetensors"] = Bytes(whole.begin(), whole.begin() + static_cast<long>(length));
      const Loaded loaded = load(folder, R"({"dtype": "exact", "threads": 1})", {Order::kAtOnce, length % 2 == 0});
      ASSERT_EQ(loaded.code, QW_INVALID_FILE) << name << " cut at " << length << ": " << loaded.message;
      ASSERT_NE(loaded.message.find("model.safetensors"), std::string::npos) << loaded.message;
    }
  }
}

TEST(Safetensors, CutInTheDataIsRefused) {
  const Bytes whole = safetensors(small_tensors());
  const size_t data = data_of(small_tensors()).size();
  for (const size_t missing : {size_t{1}, size_t{2}, size_t{4}, size_t{100}, data - 1, data}) {
    expect_refused(with_weights(Bytes(whole.begin(), whole.end() - static_cast<long>(missing))), QW_INVALID_FILE,
                   {"model.safetensors"}, std::to_string(missing) + " bytes are missing");
  }
}

TEST(Safetensors, IndexCutAtAnyLengthIsRefused) {
  Folder folder = golden_folder("qwen3-sharded-f32");
  const Bytes whole = folder["model.safetensors.index.json"];
  const size_t last_brace = text_of(whole).rfind('}');
  for (size_t length = 0; length <= last_brace; ++length) {
    folder["model.safetensors.index.json"] = Bytes(whole.begin(), whole.begin() + static_cast<long>(length));
    const Loaded loaded = load(folder, R"({"dtype": "exact", "threads": 1})");
    ASSERT_EQ(loaded.code, QW_INVALID_FILE) << "cut at " << length << ": " << loaded.message;
    ASSERT_NE(loaded.message.find("model.safetensors.index.json"), std::string::npos) << loaded.message;
  }
}

// ---- safetensors that lie

TEST(Safetensors, WithAnAbsurdHeaderLengthIsRefusedBeforeAnyLargeWant) {
  for (const uint64_t length : {uint64_t{0}, uint64_t{1}, uint64_t{1} << 31, uint64_t{1} << 32, uint64_t{1} << 40,
                                uint64_t{1} << 53, uint64_t{1} << 63, UINT64_MAX, UINT64_MAX - 7}) {
    Bytes file = safetensors(small_tensors());
    std::memcpy(file.data(), &length, 8);
    expect_refused(with_weights(file), QW_INVALID_FILE, {"model.safetensors"}, std::to_string(length));
  }
}

TEST(Safetensors, WhoseHeaderIsNoObjectOfTensorsIsRefused) {
  const Bytes data(64);
  for (const std::string& header :
       {std::string("[]"), std::string("null"), std::string("{\"a\": 1}"), std::string("{\"a\": []}"),
        std::string("{\"a\": {}}"), std::string("{\"__metadata__\": 3}"), std::string("<html></html>"),
        std::string("{\"\xff\xfe\": {}}"), std::string(100000, '['), "{\"a\": " + std::string(100000, '{'),
        std::string(64, '\0')}) {
    expect_refused(with_weights(with_header(header, data)), kInvalidOrMissing, {"model.safetensors"},
                   header.substr(0, 30));
  }
}

// Changes one field of model.norm.weight in a good header.
void expect_entry_refused(const char* field, const char* value, const std::string& what,
                          const char* named = "model.norm.weight") {
  const std::vector<Tensor> tensors = small_tensors();
  Json header = header_of(tensors);
  header["model.norm.weight"][field] = Json::parse(value);
  expect_refused(with_weights(with_header(header.dump(), data_of(tensors))), kInvalidOrMissing,
                 {"model.safetensors", named}, what);
}

TEST(Safetensors, EntriesThatLieAreRefusedByName) {
  const size_t embedding = 4u * kSmallVocab * kSmallHidden;  // model.norm.weight stands after it and has 64 bytes
  const auto offsets = [](size_t begin, size_t end) {
    return "[" + std::to_string(begin) + "," + std::to_string(end) + "]";
  };
  expect_entry_refused("data_offsets", offsets(embedding - 4, embedding + 60).c_str(), "overlaps the one before");
  expect_entry_refused("data_offsets", offsets(1u << 30, (1u << 30) + 64).c_str(), "past the end", "tensor");
  expect_entry_refused("data_offsets", offsets(embedding + 64, embedding).c_str(), "ends before it begins");
  expect_entry_refused("data_offsets", offsets(embedding, embedding + 60).c_str(), "fewer bytes than its shape");
  for (const char* value :
       {"[0]", "[0, 64, 128]", "[-64, 0]", "[0.5, 64.5]", "[\"0\", \"64\"]", "[0, 18446744073709551615]",
        "[9223372036854775744, 9223372036854775807]", "{}", "null", "[0, 1e300]"}) {
    expect_entry_refused("data_offsets", value, value);
  }
  for (const char* value : {"[15]", "[17]", "[-16]", "[\"16\"]", "[4294967312]", "[1152921504606846992]",
                            "[4294967296, 4294967296, 4294967296]", "[0]", "16", "null", "[[16]]"}) {
    expect_entry_refused("shape", value, value);
  }
  for (const char* value : {"3", "null", "[]"}) expect_entry_refused("dtype", value, value);
}

TEST(Safetensors, WithGapsOrTrailingBytesIsRefused) {
  const std::vector<Tensor> tensors = small_tensors();
  Bytes trailing = safetensors(tensors);
  trailing.resize(trailing.size() + 3);
  const Loaded loaded = load(with_weights(trailing));
  EXPECT_EQ(loaded.code, QW_INVALID_FILE) << loaded.message;
  EXPECT_NE(loaded.message.find("model.safetensors"), std::string::npos) << loaded.message;

  Json header = header_of(tensors);
  header.erase("model.norm.weight");
  expect_refused(with_weights(with_header(header.dump(), data_of(tensors))), QW_INVALID_FILE, {"model.safetensors"},
                 "a gap");
}

TEST(Safetensors, WithoutATensorIsRefusedByItsName) {
  std::vector<Tensor> tensors = small_tensors();
  tensors.erase(std::find_if(tensors.begin(), tensors.end(),
                             [](const Tensor& t) { return t.name == "model.layers.1.mlp.up_proj.weight"; }));
  expect_refused(small_folder(small_config(), tensors), QW_MISSING, {"model.layers.1.mlp.up_proj.weight"},
                 "missing tensor");
}

TEST(Safetensors, WithAnotherShapeIsRefusedWithBothShapes) {
  std::vector<Tensor> tensors = small_tensors();
  find(tensors, "model.layers.1.mlp.up_proj.weight") =
      random_tensor("model.layers.1.mlp.up_proj.weight", "F32", {25, kSmallHidden}, 1);
  expect_refused(small_folder(small_config(), tensors), QW_INVALID_FILE,
                 {"model.layers.1.mlp.up_proj.weight", "25", "24"}, "25 rows");
  tensors = small_tensors();
  find(tensors, "model.layers.1.mlp.up_proj.weight") =
      random_tensor("model.layers.1.mlp.up_proj.weight", "F32", {kSmallHidden, kSmallFfn}, 1);
  expect_refused(small_folder(small_config(), tensors), QW_INVALID_FILE, {"model.layers.1.mlp.up_proj.weight"},
                 "transposed");
}

TEST(Safetensors, WithMetadataAndTensorsThatNobodyNeedsLoads) {
  std::vector<Tensor> tensors = small_tensors();
  tensors.insert(tensors.begin(), {"extra.odd", "U8", {3}, Bytes(3)});  // no tensor after it is aligned
  tensors.push_back(random_tensor("model.layers.0.self_attn.rotary_emb.inv_freq", "F32", {4}, 9));
  tensors.push_back({"extra.scale", "F64", {2}, Bytes(16)});
  tensors.push_back({"extra.empty", "F32", {0, 7}, {}});
  tensors.push_back({"extra.scalar", "F32", {}, Bytes(4)});
  Json header = Json::object();
  header["__metadata__"] = {{"format", "pt"}, {"who", "\u00e9 \\ \" \n"}};
  header.update(header_of(tensors));
  std::string padded = header.dump();
  padded.resize((padded.size() + 7) / 8 * 8, ' ');
  EXPECT_TRUE(
      same_bits(small_logits(with_weights(with_header(padded, data_of(tensors)))), small_logits(small_folder())));
}

// ---- shards

TEST(Shards, ThatAreMissingOrLackATensorAreRefusedByName) {
  Folder folder = golden_folder("qwen3-sharded-f32");
  const std::string shard = "model-00003-of-00005.safetensors";
  Folder without = folder;
  without.erase(shard);
  expect_refused(without, QW_MISSING, {shard}, "missing shard");
  Folder swapped = folder;
  swapped[shard] = folder["model-00002-of-00005.safetensors"];
  const Loaded loaded = load(swapped);
  EXPECT_TRUE(loaded.code == QW_MISSING || loaded.code == QW_INVALID_FILE) << loaded.message;
  EXPECT_NE(loaded.message.find("model.layers."), std::string::npos) << loaded.message;
}

TEST(Shards, AreNeverLookedForOutsideTheFolder) {
  for (const char* name : {"../model.safetensors", "/etc/passwd", "a/b.safetensors", "..", "",
                           "https://example.org/x.safetensors", "c:x", "a\\b", "a?b"}) {
    Json index = {{"weight_map", {{"model.norm.weight", name}}}};
    Folder folder = {{"config.json", bytes_of(small_config().dump())},
                     {"model.safetensors.index.json", bytes_of(index.dump())}};
    expect_refused(folder, QW_INVALID_FILE, {"model.safetensors.index.json", "model.norm.weight"}, name);
  }
}

// ---- kept weights

// Loads a folder's headers and small files; the first want of rows is left open.
Engine with_headers(const Folder& folder, const char* options) {
  Engine engine(qw_engine_new(options));
  qw_want want;
  while (*qw_weights_layout(engine.get()) == 0 && qw_next_want(engine.get(), &want) == QW_WANT_FILLED) {
    EXPECT_EQ(answer(engine.get(), folder, {want.id, want.file, want.offset, want.length}, true), 0) << qw_error_message();
  }
  return engine;
}

TEST(KeptWeights, GiveTheSameBitsWithoutAnyRow) {
  for (const char* options : {R"({"dtype": "q8"})", R"({"dtype": "q4"})", kExact}) {
    const Folder folder = golden_folder("demo");
    const Engine loaded = must_load(folder, options);
    const auto bytes = static_cast<size_t>(qw_weights_bytes(loaded.get()));
    const Engine restored = with_headers(folder, options);
    ASSERT_STREQ(qw_weights_layout(restored.get()), qw_weights_layout(loaded.get()));
    ASSERT_EQ(static_cast<size_t>(qw_weights_bytes(restored.get())), bytes);
    ASSERT_GT(bytes, 0u);
    std::memcpy(qw_weights(restored.get()), qw_weights(loaded.get()), bytes);
    ASSERT_EQ(qw_restore_weights(restored.get()), 0) << qw_error_message();
    qw_want want;
    EXPECT_EQ(qw_next_want(restored.get(), &want), QW_WANT_LOADED);
    const Ids ids = {3, 50, 99, 7, 300};
    EXPECT_TRUE(same_bits(Sequence(restored).logits(ids, 5), Sequence(loaded).logits(ids, 5)));
  }
}

TEST(KeptWeights, AreOfferedOnlyBetweenHeadersAndRows) {
  const Engine fresh(qw_engine_new("{}"));
  EXPECT_STREQ(qw_weights_layout(fresh.get()), "");
  EXPECT_EQ(qw_weights(fresh.get()), nullptr);
  EXPECT_EQ(qw_weights_bytes(fresh.get()), 0);
  EXPECT_EQ(qw_restore_weights(fresh.get()), -QW_WRONG_STATE);
  const Engine loaded = must_load(golden_folder("demo"));
  EXPECT_EQ(qw_restore_weights(loaded.get()), -QW_WRONG_STATE);
}

TEST(KeptWeights, HaveALayoutThatTellsDtypesAndModelsApart) {
  const std::string q4 = qw_weights_layout(must_load(golden_folder("demo"), R"({"dtype": "q4"})").get());
  EXPECT_EQ(q4.find("q4-"), 0u) << q4;
  EXPECT_EQ(q4.size(), 3u + 16u) << q4;
  EXPECT_NE(q4, qw_weights_layout(must_load(golden_folder("demo"), R"({"dtype": "q8"})").get()));
  EXPECT_NE(q4, qw_weights_layout(must_load(golden_folder("qwen3"), R"({"dtype": "q4"})").get()));
}

}  // namespace
}  // namespace qwasm::capi_test
