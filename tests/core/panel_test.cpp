// Panels: their layout, the quality of scales that are searched, and the kernels that multiply them.
#include "core/quant/panel.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "core/base/half.h"
#include "core/base/rng.h"
#include "core/kernels/kernels.h"

namespace qwasm {
namespace {

using Floats = std::vector<float>;

// Near enough to normal: the sum of four uniform numbers.
Floats random_floats(int64_t count, uint64_t seed, double scale = 1) {
  Rng rng(seed);
  Floats values(static_cast<size_t>(count));
  for (float& v : values) v = static_cast<float>((rng.uniform() + rng.uniform() + rng.uniform() + rng.uniform() - 2) * scale);
  return values;
}

// A matrix as panels, of floats or of the blocks of a stored type.
struct Panels {
  Panels(Format format, const Floats& weights, int64_t rows, int64_t columns) : Panels(format, rows, columns) {
    each_panel([&](int64_t row, int64_t count, uint8_t* panel) { encode_panel(format, weights.data() + row * columns, count, columns, panel); });
  }
  Panels(const FormatInfo& stored, const std::vector<uint8_t>& blocks, int64_t rows, int64_t columns) : Panels(stored.panel, rows, columns) {
    each_panel([&](int64_t row, int64_t count, uint8_t* panel) {
      pack_panel(stored, blocks.data() + bytes_of(stored.format, row * columns), count, columns, panel);
    });
  }
  Panels(Format format, int64_t rows, int64_t columns)
      : format(format), rows(rows), columns(columns), bytes(static_cast<size_t>(matrix_bytes(format, rows, columns))) {}
  void each_panel(auto make) {
    for (int64_t r = 0; r < rows; r += kPanelRows) make(r, std::min(kPanelRows, rows - r), bytes.data() + r / kPanelRows * panel_bytes(format, columns));
  }
  Floats row(int64_t r) const {
    Floats values(static_cast<size_t>(columns));
    decode_panel_row(format, bytes.data(), r, columns, values.data());
    return values;
  }
  Format format;
  int64_t rows, columns;
  std::vector<uint8_t> bytes;
};

TEST(Half, EncodesEveryFloat16ToItselfAndRoundsTiesToEven) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    if ((bits & 0x7c00) == 0x7c00) continue;
    ASSERT_EQ(f32_to_f16(f16_to_f32(static_cast<uint16_t>(bits))), bits);
  }
  for (uint16_t bits = 0; bits < 0x7bff; ++bits) {  // half way between neighbours
    const auto next = static_cast<uint16_t>(bits + 1);
    const float middle = (f16_to_f32(bits) + f16_to_f32(next)) / 2;
    ASSERT_EQ(f32_to_f16(middle), bits % 2 == 0 ? bits : next) << bits;
    ASSERT_EQ(f32_to_f16(std::nextafter(middle, 1e9f)), next) << bits;
    ASSERT_EQ(f32_to_f16(std::nextafter(middle, -1e9f)), bits) << bits;
  }
  EXPECT_EQ(f32_to_f16(65519.0f), 0x7bff);
  EXPECT_EQ(f32_to_f16(65520.0f), 0x7c00);
  EXPECT_EQ(f32_to_f16(-1e30f), 0xfc00);
}

TEST(Panel, HoldsEachWeightWhereTheSpecificationSays) {
  // Row 6, column 21 of a block: the second group of rows, j = 5 in q8; the high half of j = 1 in q4.
  Floats weights(8 * 32);
  weights[6 * 32 + 21] = 127;
  const Panels q8(Format::kQ8, weights, 8, 32), q4(Format::kQ4, weights, 8, 32);
  EXPECT_EQ(q8.bytes[32 * 5 + 16 + 4 * 2 + 1], 127);
  EXPECT_EQ(q4.bytes[32 * 1 + 16 + 4 * 2 + 1] & 15, 8) << "another weight, which is 0";
  EXPECT_NE(q4.bytes[32 * 1 + 16 + 4 * 2 + 1] >> 4, 8);
  EXPECT_EQ(q8.bytes[256 + 2 * 6] | q8.bytes[256 + 2 * 6 + 1] << 8, f32_to_f16(1));
  EXPECT_FLOAT_EQ(q8.row(6)[21], 127);
  EXPECT_NEAR(q4.row(6)[21], 127, 0.1);
}

TEST(Panel, DecodesWithinHalfAStepOfEachWeight) {
  for (const Format format : {Format::kQ8, Format::kQ4}) {
    for (const int64_t rows : {1, 7, 8, 9, 20}) {
      for (const int64_t columns : {1, 31, 32, 33, 60, 96}) {
        const Floats weights = random_floats(rows * columns, static_cast<uint64_t>(rows + columns), 0.1);
        const Panels panels(format, weights, rows, columns);
        for (int64_t r = 0; r < rows; ++r) {
          const Floats decoded = panels.row(r);
          for (int64_t b = 0; b < columns; b += 32) {
            float largest = 0;
            for (int64_t i = b; i < std::min(b + 32, columns); ++i) largest = std::max(largest, std::fabs(weights[static_cast<size_t>(r * columns + i)]));
            for (int64_t i = b; i < std::min(b + 32, columns); ++i) {
              const float error = std::fabs(decoded[static_cast<size_t>(i)] - weights[static_cast<size_t>(r * columns + i)]);
              ASSERT_LE(error, largest * (format == Format::kQ8 ? 0.0045f : 0.18f)) << rows << " " << columns << " " << r << " " << i;
            }
          }
        }
      }
    }
  }
}

TEST(Panel, SearchesItsScalesForLessErrorThanTheLargestWeightGives) {
  const int64_t columns = 32 * 200;
  const Floats weights = random_floats(8 * columns, 3, 0.05);
  const Panels panels(Format::kQ4, weights, 8, columns);
  double searched = 0, plain = 0;
  for (int64_t r = 0; r < 8; ++r) {
    const Floats decoded = panels.row(r);
    for (int64_t b = 0; b < columns; b += 32) {
      float extreme = 0;
      const float* w = weights.data() + r * columns + b;
      for (int i = 0; i < 32; ++i) extreme = std::fabs(w[i]) > std::fabs(extreme) ? w[i] : extreme;
      const float scale = extreme / -8;
      for (int i = 0; i < 32; ++i) {
        const float q = std::clamp(std::nearbyint(w[i] / scale), -8.0f, 7.0f);
        plain += std::pow(w[i] - q * scale, 2);
        searched += std::pow(w[i] - decoded[static_cast<size_t>(b + i)], 2);
      }
    }
  }
  EXPECT_LT(searched, 0.9 * plain);
}

TEST(Panel, KeepsZerosAndTinyAndHugeWeights) {
  for (const Format format : {Format::kQ8, Format::kQ4}) {
    for (const float size : {0.0f, 1e-30f, 1e-7f, 1.0f, 1e4f}) {
      const Panels panels(format, Floats(32, size), 1, 32);
      for (const float value : panels.row(0)) EXPECT_NEAR(value, size, size * 0.01f + 1e-7f);
    }
  }
}

const Kernels* const kSimdVariants[] = {&simd_kernels(), &relaxed_kernels(), &relaxed_wide_kernels()};

// Activations as a variant wants them for a format.
struct Quantized {
  Quantized(const Kernels& kernels, Format format, const Floats& x, int64_t tokens, int64_t columns)
      : has_float16_scales(block_numbers(format) == 1),
        blocks(blocks_of(columns)),
        values(static_cast<size_t>(QuantizedTokens::room(tokens) * blocks * QuantizedTokens::kBlockBytes)),
        scales(static_cast<size_t>(QuantizedTokens::room(tokens) * blocks)),
        sums(scales.size() * QuantizedTokens::kSums) {
    view = {values.data(), scales.data(), sums.data(), tokens, blocks, format};
    for (int64_t t = 0; t < tokens; t += QuantizedTokens::kTile) kernels.panel(format).quantize(view, t, x.data() + t * columns, columns);
  }
  // Of the scalar and the plain SIMD layout.
  double value(int64_t token, int64_t column) const {
    const int64_t size = view.tile_size(token), within = token % size, b = column / 32, k = column % 32;
    const QuantizedTokens::Tile tile = view.tile(token - within);
    int16_t whole;
    std::memcpy(&whole, tile.values + ((b * 8 + k / 4) * size + within) * 16 + k % 4 * 2, 2);
    return static_cast<double>(tile.scales[b * size + within]) * (has_float16_scales ? 0x1p-112 : 1) * whole;
  }
  bool has_float16_scales;
  int64_t blocks;
  std::vector<uint8_t> values;
  Floats scales, sums;
  QuantizedTokens view;
};

TEST(Quantize, RoundsActivationsToAHundredAndTwentySeventhOfTheirLargest) {
  for (const int64_t columns : {1, 31, 32, 33, 100}) {
    const Floats x = random_floats(2 * columns, 4, 5);
    const Quantized scalar(scalar_kernels(), Format::kQ4, x, 2, columns);
    EXPECT_EQ(scalar.values, Quantized(simd_kernels(), Format::kQ4, x, 2, columns).values);
    for (const Kernels* kernels : kSimdVariants) {
      const Quantized simd(*kernels, Format::kQ4, x, 2, columns);
      EXPECT_EQ(scalar.scales, simd.scales);
      EXPECT_EQ(scalar.sums, simd.sums);
    }
    for (int64_t t = 0; t < 2; ++t) {
      for (int64_t i = 0; i < columns; ++i) ASSERT_NEAR(scalar.value(t, i), x[static_cast<size_t>(t * columns + i)], 10 / 127.0 / 2);
    }
  }
}

TEST(Quantize, LetsNeitherANaNNorAnInfinityBecomeAnOrdinaryNumber) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    for (const size_t at : {0, 5, 31}) {
      Floats x(32, 1.0f);
      x[at] = bad;
      for (const Format format : {Format::kQ8, Format::kQ4, Format::kQ4M, Format::kQ8M}) {
        EXPECT_TRUE(std::isnan(Quantized(scalar_kernels(), format, x, 1, 32).scales[0]));
        for (const Kernels* kernels : kSimdVariants) EXPECT_TRUE(std::isnan(Quantized(*kernels, format, x, 1, 32).scales[0]));
      }
    }
  }
}

Floats multiply(const Kernels& kernels, const Panels& w, const Quantized& x, int64_t cut) {
  const int64_t tokens = x.view.tokens;
  Floats y(static_cast<size_t>(tokens * w.rows), std::numeric_limits<float>::quiet_NaN());
  std::vector<double> scratch(static_cast<size_t>(panel_scratch_bytes(x.blocks)) / 8 + 2);
  const auto matmul = kernels.panel(w.format).matmul;
  matmul(y.data(), w.rows, w.rows, w.bytes.data(), x.view, 0, cut, scratch.data());
  matmul(y.data(), w.rows, w.rows, w.bytes.data(), x.view, cut, panels_of(w.rows), scratch.data());
  return y;
}

void expect_same_bits(const Floats& a, const Floats& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) ASSERT_EQ(std::bit_cast<uint32_t>(a[i]), std::bit_cast<uint32_t>(b[i])) << i << ": " << a[i] << ", " << b[i];
}

// Of values with scales of about 1 / 16, and minimums of about as much as the largest value.
std::vector<uint8_t> random_blocks(const FormatInfo& stored, int64_t count, uint64_t seed) {
  Rng rng(seed);
  std::vector<uint8_t> blocks(static_cast<size_t>(bytes_of(stored.format, count)));
  for (uint8_t& byte : blocks) byte = static_cast<uint8_t>(rng.next());
  for (auto block = blocks.begin(); block != blocks.end(); block += stored.bytes_per_block) {
    if (stored.format == Format::kMXFP4) block[0] = 120;
    for (int i = 0; i < stored.halves; ++i) {
      const uint16_t half = f32_to_f16(static_cast<float>((rng.uniform() + 0.5) / 16 * (i == 1 && stored.elements_per_block == 32 ? -8 : 1)));
      std::memcpy(&block[stored.halves_at + 2 * i], &half, 2);
    }
  }
  return blocks;
}

// What kernels find is near to the products of what the panels hold, and has the same bits in every variant.
void expect_products(const Panels& w, int64_t tokens) {
  const Floats x = random_floats(tokens * w.columns, 6);
  const Quantized quantized(scalar_kernels(), w.format, x, tokens, w.columns);
  const Floats found = multiply(scalar_kernels(), w, quantized, panels_of(w.rows) / 2);
  for (int64_t r = 0; r < w.rows; ++r) {
    const Floats row = w.row(r);
    for (int64_t t = 0; t < tokens; ++t) {
      double sum = 0, size = 0;
      for (int64_t k = 0; k < w.columns; ++k) {
        const double product = row[static_cast<size_t>(k)] * quantized.value(t, k);
        sum += product;
        size += std::fabs(product);
      }
      ASSERT_NEAR(found[static_cast<size_t>(t * w.rows + r)], sum, 1e-6 * size) << w.rows << " x " << w.columns << ", " << tokens << " tokens";
    }
  }
  for (const Kernels* kernels : kSimdVariants) {
    expect_same_bits(found, multiply(*kernels, w, Quantized(*kernels, w.format, x, tokens, w.columns), 0));
  }
}

TEST(PanelMatMul, MultipliesWhatThePanelsHoldForEveryShape) {
  for (const Format format : {Format::kQ8, Format::kQ4}) {
    for (const int64_t columns : {1, 31, 32, 33, 64, 100}) {
      for (const int64_t rows : {1, 3, 4, 5, 8, 9, 12, 17}) {
        const Panels w(format, random_floats(rows * columns, 5), rows, columns);
        for (const int64_t tokens : {1, 2, 3, 4, 5, 8, 9}) expect_products(w, tokens);
      }
    }
  }
}

constexpr Format kStoredTypes[] = {Format::kQ8_0, Format::kQ4_0, Format::kQ4_1, Format::kQ5_0, Format::kQ5_1,   Format::kQ2_K,
                                   Format::kQ3_K, Format::kQ4_K, Format::kQ5_K, Format::kQ6_K, Format::kIQ4_NL, Format::kMXFP4};

TEST(PanelMatMul, MultipliesThePanelsOfEveryStoredType) {
  for (const Format format : kStoredTypes) {
    const FormatInfo& stored = format_info(format);
    for (const int64_t blocks : {1, 3}) {
      const int64_t columns = blocks * stored.elements_per_block;
      for (const int64_t rows : {1, 4, 5, 8, 17}) {
        SCOPED_TRACE(stored.name);
        const Panels w(stored, random_blocks(stored, rows * columns, 5), rows, columns);
        for (const int64_t tokens : {1, 2, 3, 4, 5, 9}) expect_products(w, tokens);
      }
    }
  }
}

TEST(PanelMatMul, GivesTheSameBitsForOneTokenAsForMany) {
  const int64_t rows = 20, tokens = 7;
  const FormatInfo &q4_k = format_info(Format::kQ4_K), &q6_k = format_info(Format::kQ6_K);
  for (const Panels& w : {Panels(Format::kQ8, random_floats(rows * 300, 8), rows, 300), Panels(Format::kQ4, random_floats(rows * 300, 8), rows, 300),
                          Panels(q4_k, random_blocks(q4_k, rows * 512, 8), rows, 512), Panels(q6_k, random_blocks(q6_k, rows * 512, 8), rows, 512)}) {
    const int64_t columns = w.columns;
    const Floats x = random_floats(tokens * columns, 7);
    for (const Kernels* kernels : {&scalar_kernels(), &simd_kernels(), &relaxed_kernels(), &relaxed_wide_kernels()}) {
      const Floats together = multiply(*kernels, w, Quantized(*kernels, w.format, x, tokens, columns), 1);
      Floats apart;
      for (int64_t t = 0; t < tokens; ++t) {
        const Floats token(x.begin() + t * columns, x.begin() + (t + 1) * columns);
        const Floats y = multiply(*kernels, w, Quantized(*kernels, w.format, token, 1, columns), 1);
        apart.insert(apart.end(), y.begin(), y.end());
      }
      expect_same_bits(together, apart);
    }
  }
}

TEST(PanelMatMul, IsExactAtTheExtremesOfItsValues) {
  // Every product at its largest: integer sums must not overflow.
  const int64_t columns = 64;
  for (const Format format : {Format::kQ8, Format::kQ4}) {
    for (const float sign : {1.0f, -1.0f}) {
      const Panels w(format, Floats(8 * columns, 3.0f), 8, columns);
      for (const Kernels* kernels : {&scalar_kernels(), &simd_kernels(), &relaxed_kernels(), &relaxed_wide_kernels()}) {
        for (const int64_t tokens : {1, 5}) {
          const Quantized x(*kernels, format, Floats(static_cast<size_t>(tokens * columns), sign * 2), tokens, columns);
          for (const float y : multiply(*kernels, w, x, 0)) EXPECT_NEAR(y, sign * 6 * columns, 0.5);
        }
      }
    }
  }
}

TEST(PanelMatMul, IsExactAtTheExtremesOfStoredValues) {
  const auto fill = [](Format format, uint8_t byte) {
    const FormatInfo& stored = format_info(format);
    std::vector<uint8_t> blocks(static_cast<size_t>(bytes_of(format, 8 * 256)), byte);
    for (auto block = blocks.begin(); block != blocks.end(); block += stored.bytes_per_block) {
      for (int i = 0; i < stored.halves; ++i) block[stored.halves_at + 2 * i] = 0, block[stored.halves_at + 2 * i + 1] = 0x3c;
    }
    return Panels(stored, blocks, 8, 256);
  };
  // Whole numbers of -128, 15 and 31, with scales up to 127 and minimums.
  for (const Panels& w : {fill(Format::kQ8_0, 0x80), fill(Format::kQ4_1, 0xff), fill(Format::kQ5_1, 0xff), fill(Format::kQ6_K, 0x7f)}) {
    double expected = 0;
    for (const float value : w.row(7)) expected += value;
    for (const float x : {2.0f, -2.0f}) {
      for (const Kernels* kernels : {&scalar_kernels(), &simd_kernels(), &relaxed_kernels(), &relaxed_wide_kernels()}) {
        for (const int64_t tokens : {1, 5}) {
          const Quantized quantized(*kernels, w.format, Floats(static_cast<size_t>(tokens * w.columns), x), tokens, w.columns);
          for (const float y : multiply(*kernels, w, quantized, 0)) EXPECT_NEAR(y, x * expected, std::fabs(x * expected) * 1e-6);
        }
      }
    }
  }
}

}  // namespace
}  // namespace qwasm
