// Weights of GGUF's storage types on their way from a file to products: dtype 'stored', exact mode, and layers that mix formats.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>

#include "core/base/rng.h"
#include "core/engine/load.h"
#include "core/model/ops.h"
#include "core/quant/panel.h"
#include "tests/core/small_model.h"

namespace qwasm {
namespace {

using capi_test::Floats;
using DType = Loader::DType;

constexpr Format kBlockTypes[] = {Format::kQ8_0, Format::kQ4_0, Format::kQ4_1, Format::kQ5_0, Format::kQ5_1,   Format::kQ2_K,
                                  Format::kQ3_K, Format::kQ4_K, Format::kQ5_K, Format::kQ6_K, Format::kIQ4_NL, Format::kMXFP4};

// Random blocks with small scales.
std::vector<uint8_t> random_blocks(const FormatInfo& info, int64_t elements, uint64_t seed) {
  Rng rng(seed);
  std::vector<uint8_t> bytes(static_cast<size_t>(bytes_of(info.format, elements)));
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(rng.next());
  for (auto block = bytes.begin(); block != bytes.end(); block += info.bytes_per_block) {
    if (info.format == Format::kMXFP4) block[0] = 118;
    for (int i = 0; i < info.halves; ++i) block[info.halves_at + 2 * i + 1] = 0x1c;  // 0.004 … 0.008
  }
  return bytes;
}

Floats random_floats(int64_t count, uint64_t seed) {
  Rng rng(seed);
  Floats values(static_cast<size_t>(count));
  for (float& v : values) v = static_cast<float>(rng.uniform() * 2 - 1);
  return values;
}

Floats row_of(const Matrix& matrix, int64_t r) {
  Floats values(static_cast<size_t>(matrix.columns), std::nanf(""));
  const auto* data = static_cast<const uint8_t*>(matrix.data);
  if (is_panel(matrix.format)) decode_panel_row(matrix.format, data, r, matrix.columns, values.data());
  else format_info(matrix.format).decode(data + bytes_of(matrix.format, r * matrix.columns), matrix.columns, values.data());
  return values;
}

void expect_same_bits(const Floats& a, const Floats& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) ASSERT_EQ(std::bit_cast<uint32_t>(a[i]), std::bit_cast<uint32_t>(b[i])) << "at " << i << ": " << a[i] << ", " << b[i];
}

// ---- loading

// A model whose widths suit blocks of 256; 45 rows of words are no whole panels.
Json wide_config() {
  Json config = capi_test::small_config();
  config.update({{"vocab_size", 45}, {"hidden_size", 256}, {"intermediate_size", 512}, {"num_hidden_layers", 1}, {"num_attention_heads", 2},
                 {"num_key_value_heads", 1}, {"head_dim", 256}});
  return config;
}

// Loads that model with all matrices in `stored` from a file of blocks. Until GGUF's reader names them, the table of tensors of a float file is
// changed once its header was read.
struct LoadedBlocks {
  LoadedBlocks(const FormatInfo& stored, DType dtype, int threads) : pool(threads), loader({.dtype = dtype}, pool, &model) {
    Config config;
    EXPECT_TRUE(parse_config(wide_config(), &config).ok());
    Weights unused;
    std::vector<capi_test::Tensor> tensors;
    for (const WeightSlot& slot : weight_slots(config, {}, &unused)) {
      tensors.push_back(capi_test::random_tensor(slot.name, "F32", slot.matrix ? std::vector<int64_t>{slot.rows, slot.columns} : std::vector<int64_t>{slot.rows}, 1));
    }
    const capi_test::Bytes file = capi_test::safetensors(tensors);
    uint32_t id = 0, last = 0;
    std::vector<std::pair<uint32_t, Loader::Want>> wants;
    const auto collect = [&] {
      while (const Loader::Want* want = loader.next(&id)) wants.emplace_back(id, *want);
    };
    for (collect(); !wants.empty(); collect()) {
      const auto [number, want] = wants.front();
      wants.erase(wants.begin());
      if (want.file == "config.json") push(number, capi_test::bytes_of(wide_config().dump()));
      else if (want.file == "generation_config.json") last = number;  // answered when the table was changed
      else if (want.file == "model.safetensors") push(number, slice(file, want));
      else missing(number);
    }
    store_as(stored);
    missing(last);
    for (collect(); !wants.empty(); collect()) {
      push(wants.back().first, slice(blocks, wants.back().second));
      wants.pop_back();
    }
    EXPECT_TRUE(loader.loaded());
  }

  void store_as(const FormatInfo& stored) {
    for (auto& [name, tensor] : model.tensors) {
      int64_t count = 1;
      for (const int64_t n : tensor.shape) count *= n;
      if (tensor.shape.size() == 2) tensor.format = &stored;
      const std::vector<uint8_t> bytes = tensor.shape.size() == 2 ? random_blocks(stored, count, name.size()) : std::vector<uint8_t>(static_cast<size_t>(count) * 4);
      tensor.begin = static_cast<int64_t>(blocks.size());
      blocks.insert(blocks.end(), bytes.begin(), bytes.end());
      tensor.end = static_cast<int64_t>(blocks.size());
    }
  }
  void push(uint32_t id, const capi_test::Bytes& bytes) {
    const Status status = loader.push(id, {reinterpret_cast<const char*>(bytes.data()), bytes.size()}, -1);
    EXPECT_TRUE(status.ok()) << status.message();
  }
  void missing(uint32_t id) {
    const Status status = loader.push_missing(id);
    EXPECT_TRUE(status.ok()) << status.message();
  }
  static capi_test::Bytes slice(const capi_test::Bytes& file, const Loader::Want& want) {
    return {file.begin() + want.offset, file.begin() + want.offset + want.length};
  }

  // What the file says of a row.
  Floats stored_row(const std::string& name, int64_t r) const {
    const TensorInfo& tensor = model.tensors.at(name);
    Floats values(static_cast<size_t>(tensor.shape[1]));
    tensor.format->decode(blocks.data() + tensor.begin + bytes_of(tensor.format->format, r * tensor.shape[1]), tensor.shape[1], values.data());
    return values;
  }

  ThreadPool pool;
  Model model;
  Loader loader;
  capi_test::Bytes blocks;
};

struct Named {
  std::string name;
  const Matrix* matrix;
};
std::vector<Named> some_matrices(const Weights& w) {
  return {{"model.embed_tokens.weight", &w.embed_tokens},
          {"model.layers.0.self_attn.k_proj.weight", &w.layers[0].k_proj},
          {"model.layers.0.mlp.down_proj.weight", &w.layers[0].down_proj}};
}

TEST(Stored, KeepsTheValuesOfEveryTypeInItsPanelsAndInExactModeItsBlocks) {
  for (const Format format : kBlockTypes) {
    const FormatInfo& info = format_info(format);
    SCOPED_TRACE(info.name);
    for (const DType dtype : {DType::kStored, DType::kExact}) {
      const LoadedBlocks loaded(info, dtype, 2);
      for (const auto& [name, matrix] : some_matrices(loaded.model.weights)) {
        ASSERT_EQ(matrix->format, dtype == DType::kStored ? info.panel : format);
        for (int64_t r = 0; r < matrix->rows; ++r) {
          const Floats found = row_of(*matrix, r), expected = loaded.stored_row(name, r);
          for (size_t i = 0; i < found.size(); ++i) ASSERT_EQ(found[i], expected[i]) << name << " (" << r << ", " << i << ")";
        }
      }
    }
  }
}

TEST(Stored, BecomesQ8AndQ4ByItsValues) {
  for (const Format format : kBlockTypes) {
    const FormatInfo& info = format_info(format);
    SCOPED_TRACE(info.name);
    for (const auto& [dtype, panel, error] : {std::tuple(DType::kQ8, Format::kQ8, 0.01f), std::tuple(DType::kQ4, Format::kQ4, 0.2f)}) {
      const LoadedBlocks loaded(info, dtype, 1);
      for (const auto& [name, matrix] : some_matrices(loaded.model.weights)) {
        ASSERT_EQ(matrix->format, panel);
        for (int64_t r = 0; r < matrix->rows; r += 7) {
          const Floats found = row_of(*matrix, r), expected = loaded.stored_row(name, r);
          for (size_t b = 0; b < found.size(); b += 32) {
            float largest = 0;
            for (size_t i = b; i < b + 32; ++i) largest = std::max(largest, std::fabs(expected[i]));
            const float allowed = info.panel == panel ? 0 : error * largest;  // its own panel takes it as it is
            for (size_t i = b; i < b + 32; ++i) ASSERT_LE(std::fabs(found[i] - expected[i]), allowed) << name << " (" << r << ", " << i << ")";
          }
        }
      }
    }
  }
}

TEST(Stored, OfAFileOfFloatsIsExactMode) {
  const auto folder = capi_test::small_folder();
  const auto bits = [&](const char* options) {
    const capi_test::Engine engine = capi_test::must_load(folder, options);
    const auto info = capi_test::Json::parse(qw_info(engine.get()), nullptr, false);
    EXPECT_EQ(info["kv"], "f32");
    return capi_test::Sequence(engine).logits(capi_test::small_prompt(), 12);
  };
  expect_same_bits(bits(R"({"dtype": "stored"})"), bits(R"({"dtype": "exact"})"));
}

// ---- products

// Matrices that own what they point to.
struct Made {
  Made(const FormatInfo& info, int64_t rows, int64_t columns, uint64_t seed, bool as_panels) : bytes(random_blocks(info, rows * columns, seed)) {
    matrix = {bytes.data(), info.format, rows, columns};
    if (!as_panels) return;
    panels.resize(static_cast<size_t>(matrix_bytes(info.panel, rows, columns)));
    for (int64_t r = 0; r < rows; r += kPanelRows) {
      pack_panel(info, bytes.data() + bytes_of(info.format, r * columns), std::min(kPanelRows, rows - r), columns,
                 panels.data() + r / kPanelRows * panel_bytes(info.panel, columns));
    }
    matrix = {panels.data(), info.panel, rows, columns};
  }
  std::vector<uint8_t> bytes, panels;
  Matrix matrix;
};

Config ops_config() {
  Config config;
  EXPECT_TRUE(parse_config(wide_config(), &config).ok());
  return config;
}

TEST(ExactProducts, OfBlocksHaveTheBitsOfTheSameValuesInFloat32) {
  const Config config = ops_config();
  const int64_t rows = 45, columns = 512;
  for (const Format format : kBlockTypes) {
    SCOPED_TRACE(format_info(format).name);
    const Made made(format_info(format), rows, columns, 3, false);
    Floats decoded;
    for (int64_t r = 0; r < rows; ++r) {
      const Floats row = row_of(made.matrix, r);
      decoded.insert(decoded.end(), row.begin(), row.end());
    }
    const Matrix floats = {decoded.data(), Format::kF32, rows, columns};
    for (const int threads : {1, 3}) {
      ThreadPool pool(threads);
      Ops ops(config, scalar_kernels(), pool);
      ASSERT_TRUE(ops.prepare(8, FormatSet(format)).ok());
      for (const int64_t tokens : {1, 5}) {
        const Floats x = random_floats(tokens * columns, 4);
        Floats found(static_cast<size_t>(tokens * rows)), expected = found;
        ops.product(found.data(), made.matrix, x.data(), tokens);
        ops.product(expected.data(), floats, x.data(), tokens);
        expect_same_bits(found, expected);
      }
    }
  }
}

TEST(MixedFormats, GiveEachMatrixTheProductThatItHasAlone) {
  const Config config = ops_config();
  const int64_t rows = config.intermediate_size, columns = config.hidden_size;
  for (const auto& [gate_type, up_type] : {std::pair(Format::kQ4_K, Format::kQ6_K), std::pair(Format::kQ4_0, Format::kQ4_1), std::pair(Format::kQ8_0, Format::kQ5_0)}) {
    const Made gate(format_info(gate_type), rows, columns, 5, true), up(format_info(up_type), rows, columns, 6, true);
    FormatSet formats(gate.matrix.format);
    formats.add(up.matrix.format);
    for (const Kernels* kernels : {&scalar_kernels(), &simd_kernels(), &relaxed_kernels()}) {
      ThreadPool pool(2);
      Ops ops(config, *kernels, pool);
      ASSERT_TRUE(ops.prepare(8, formats).ok());
      const int64_t tokens = 3;
      const Floats x = random_floats(tokens * columns, 7);
      Floats together(static_cast<size_t>(tokens * rows)), expected = together, other = together;
      ops.gated_product(together.data(), gate.matrix, up.matrix, x.data(), tokens);
      ops.product(expected.data(), gate.matrix, x.data(), tokens);
      ops.product(other.data(), up.matrix, x.data(), tokens);
      kernels->silu_mul(expected.data(), other.data(), tokens * rows);
      expect_same_bits(together, expected);
    }
  }
}

}  // namespace
}  // namespace qwasm
