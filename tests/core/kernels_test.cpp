// Every kernel in every variant: against a plain twin in double, and scalar against SIMD bit for bit, at every count from 0 to two
// whole vectors and beyond, from misaligned addresses, into memory filled with NaN.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <vector>

#include "core/base/half.h"
#include "core/base/rng.h"
#include "core/kernels/kernels.h"
#include "core/quant/cache_block.h"

namespace qwasm {
namespace {

using Floats = std::vector<float>;

const Kernels* const kVariants[] = {&scalar_kernels(), &simd_kernels(), &relaxed_kernels(), &relaxed_wide_kernels()};

Floats random_floats(int64_t count, uint64_t seed, double scale = 1) {
  Rng rng(seed);
  Floats values(static_cast<size_t>(count));
  for (float& v : values) v = static_cast<float>((rng.uniform() * 2 - 1) * scale);
  return values;
}

Floats nans(int64_t count) { return Floats(static_cast<size_t>(count), std::numeric_limits<float>::quiet_NaN()); }

// One float past an aligned address: kernels may not rely on alignment.
struct Misaligned {
  explicit Misaligned(const Floats& values) : memory(values.size() + 1) { std::copy(values.begin(), values.end(), memory.begin() + 1); }
  float* data() { return memory.data() + 1; }
  Floats memory;
};

void expect_same_bits(const Floats& a, const Floats& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) ASSERT_EQ(std::bit_cast<uint32_t>(a[i]), std::bit_cast<uint32_t>(b[i])) << "at " << i << ": " << a[i] << ", " << b[i];
}

void expect_near(const Floats& found, const std::vector<double>& expected, double relative, double absolute) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) ASSERT_NEAR(found[i], expected[i], absolute + relative * std::fabs(expected[i])) << "at " << i;
}

// Runs `kernel` in every variant: equal bits, and near `expected`.
void check(const std::function<Floats(const Kernels&)>& kernel, const std::vector<double>& expected, double relative, double absolute) {
  const Floats scalar = kernel(scalar_kernels());
  expect_near(scalar, expected, relative, absolute);
  for (const Kernels* kernels : kVariants) expect_same_bits(scalar, kernel(*kernels));
}

// Values as a format stores them (with one element before them, so that they are misaligned), and what they decode to.
struct Stored {
  Stored(Format format, int64_t count, uint64_t seed) : bits(static_cast<size_t>(count + 1) * 4), values(static_cast<size_t>(count)) {
    Rng rng(seed);
    const int64_t width = bytes_of(format, 1);
    data = bits.data() + width;
    for (int64_t i = 0; i < count; ++i) {
      const float value = static_cast<float>(rng.uniform() * 2 - 1);
      const uint32_t pattern = std::bit_cast<uint32_t>(value);
      const uint16_t half = format == Format::kF16 ? static_cast<uint16_t>(rng.next() & 0xbbff) : static_cast<uint16_t>(pattern >> 16);
      std::memcpy(data + i * width, width == 4 ? static_cast<const void*>(&pattern) : &half, static_cast<size_t>(width));
    }
    format_info(format).decode(data, count, values.data());
  }
  std::vector<uint8_t> bits;
  uint8_t* data;
  Floats values;
};

TEST(MatMul, EqualsThePlainSumForEveryShapeFormatAndRowRange) {
  for (const Format format : {Format::kF32, Format::kF16, Format::kBF16}) {
    for (const int64_t columns : {1, 2, 3, 4, 5, 7, 8, 9, 31, 64}) {
      for (const int64_t rows : {1, 2, 3, 4, 5, 9}) {
        for (const int64_t tokens : {1, 2, 3, 4, 5, 9}) {
          const Stored w(format, rows * columns, static_cast<uint64_t>(rows * columns));
          Misaligned x(random_floats(tokens * columns, 5));
          std::vector<double> expected;
          for (int64_t t = 0; t < tokens; ++t) {
            for (int64_t r = 0; r < rows; ++r) {
              double sum = 0;
              for (int64_t k = 0; k < columns; ++k) sum += static_cast<double>(w.values[static_cast<size_t>(r * columns + k)]) * x.data()[t * columns + k];
              expected.push_back(sum);
            }
          }
          const auto run = [&](const Kernels& kernels) {
            Floats y = nans(tokens * rows);
            const int64_t cut = rows / 2;
            kernels.matmul[static_cast<int>(format)](y.data(), rows, w.data, x.data(), columns, 0, cut, tokens);
            kernels.matmul[static_cast<int>(format)](y.data(), rows, w.data, x.data(), columns, cut, rows, tokens);
            return y;
          };
          check(run, expected, 1e-5, 1e-5);
        }
      }
    }
  }
}

TEST(MatMul, GivesTheSameBitsForOneTokenAsForMany) {
  const int64_t rows = 7, columns = 37, tokens = 11;
  const Stored w(Format::kBF16, rows * columns, 1);
  Floats x = random_floats(tokens * columns, 2);
  for (const Kernels* kernels : kVariants) {
    Floats together = nans(tokens * rows), apart = nans(tokens * rows);
    const Kernels::MatMul matmul = kernels->matmul[static_cast<int>(Format::kBF16)];
    matmul(together.data(), rows, w.data, x.data(), columns, 0, rows, tokens);
    for (int64_t t = 0; t < tokens; ++t) matmul(apart.data() + t * rows, rows, w.data, x.data() + t * columns, columns, 0, rows, 1);
    expect_same_bits(together, apart);
  }
}

TEST(MatMul, WritesOnlyTheRowsOfItsRange) {
  const Stored w(Format::kF32, 6 * 4, 1);
  Floats x = random_floats(4, 2);
  for (const Kernels* kernels : kVariants) {
    Floats y = nans(6);
    kernels->matmul[0](y.data(), 6, w.data, x.data(), 4, 2, 5, 1);
    for (size_t r = 0; r < 6; ++r) EXPECT_EQ(std::isnan(y[r]), r < 2 || r >= 5) << kernels->name << " row " << r;
  }
}

TEST(RmsNorm, DividesByTheRootOfTheMeanSquare) {
  for (int64_t n = 1; n <= 40; ++n) {
    Misaligned x(random_floats(n, 3, 4)), weight(random_floats(n, 4));
    double squares = 0;
    for (int64_t i = 0; i < n; ++i) squares += static_cast<double>(x.data()[i]) * x.data()[i];
    std::vector<double> expected;
    for (int64_t i = 0; i < n; ++i) expected.push_back(x.data()[i] / std::sqrt(squares / static_cast<double>(n) + 1e-6) * weight.data()[i]);
    const auto apart = [&](const Kernels& kernels) {
      Floats y = nans(n);
      kernels.rms_norm(y.data(), x.data(), weight.data(), n, 1e-6f);
      return y;
    };
    const auto in_place = [&](const Kernels& kernels) {
      Floats y(x.data(), x.data() + n);
      kernels.rms_norm(y.data(), y.data(), weight.data(), n, 1e-6f);
      return y;
    };
    check(apart, expected, 1e-6, 1e-7);
    check(in_place, expected, 1e-6, 1e-7);
  }
}

TEST(Rope, RotatesTheTwoHalves) {
  for (int64_t n = 2; n <= 40; n += 2) {
    const int64_t half = n / 2;
    const Floats x = random_floats(n, 5);
    Floats cos, sin;
    std::vector<double> expected(static_cast<size_t>(n));
    for (int64_t i = 0; i < half; ++i) {
      cos.push_back(static_cast<float>(std::cos(0.3 * static_cast<double>(i + 1))));
      sin.push_back(static_cast<float>(std::sin(0.3 * static_cast<double>(i + 1))));
      const auto a = static_cast<size_t>(i), b = static_cast<size_t>(i + half);
      expected[a] = static_cast<double>(x[a]) * cos[a] - static_cast<double>(x[b]) * sin[a];
      expected[b] = static_cast<double>(x[b]) * cos[a] + static_cast<double>(x[a]) * sin[a];
    }
    check(
        [&](const Kernels& kernels) {
          Floats y = x;
          kernels.rope(y.data(), cos.data(), sin.data(), n);
          return y;
        },
        expected, 1e-6, 1e-6);
  }
}

TEST(SiluMul, IsTheSigmoidWeightedProductOverTheWholeRange) {
  for (int64_t n = 0; n <= 20; ++n) {
    for (const double scale : {1.0, 30.0, 200.0, 1e30}) {
      const Floats gate = random_floats(n, 6, scale), up = random_floats(n, 7);
      std::vector<double> expected;
      for (size_t i = 0; i < gate.size(); ++i) expected.push_back(gate[i] / (1 + std::exp(-static_cast<double>(gate[i]))) * up[i]);
      check(
          [&](const Kernels& kernels) {
            Floats y = gate;
            kernels.silu_mul(y.data(), up.data(), n);
            return y;
          },
          expected, 1e-6, 1e-7);
    }
  }
}

TEST(Add, AddsElementByElement) {
  for (int64_t n = 0; n <= 20; ++n) {
    const Floats a = random_floats(n, 8);
    Misaligned b(random_floats(n, 9));
    std::vector<double> expected;
    for (int64_t i = 0; i < n; ++i) expected.push_back(static_cast<double>(a[static_cast<size_t>(i)]) + b.data()[i]);
    check(
        [&](const Kernels& kernels) {
          Floats y = a;
          kernels.add(y.data(), b.data(), n);
          return y;
        },
        expected, 1e-7, 0);
  }
}

TEST(Scale, MultipliesElementByElement) {
  for (int64_t n = 0; n <= 20; ++n) {
    const Floats x = random_floats(n, 8);
    std::vector<double> expected;
    for (const float v : x) expected.push_back(v * 0.3f);
    check(
        [&](const Kernels& kernels) {
          Floats y = x;
          kernels.scale(y.data(), n, 0.3f);
          return y;
        },
        expected, 1e-7, 0);
  }
}

TEST(Exponentials, AreThoseOfTheDistanceToTheLargestWithTheirSum) {
  for (int64_t n = 1; n <= 40; ++n) {
    for (const double scale : {0.01, 1.0, 50.0, 1e4}) {
      const Floats x = random_floats(n, 12, scale);
      double largest = x[0], total = 0;
      for (const float v : x) largest = std::max(largest, static_cast<double>(v));
      std::vector<double> expected;
      for (const float v : x) expected.push_back(3 * std::exp(v - largest));
      for (const float v : x) total += std::exp(v - largest);
      expected.push_back(total);
      check(
          [&](const Kernels& kernels) {
            Floats y = x;
            const float sum = kernels.exponentials(y.data(), n, 3);
            y.push_back(sum);
            return y;
          },
          expected, 1e-5, 1e-30);
    }
  }
}

TEST(Exponentials, KeepANaNFromBeingLost) {
  for (const Kernels* kernels : kVariants) {
    for (const size_t at : {0, 3, 4, 8}) {
      Floats x = random_floats(9, 1);
      x[at] = std::numeric_limits<float>::quiet_NaN();
      EXPECT_TRUE(std::isnan(kernels->exponentials(x.data(), 9, 1))) << kernels->name << " at " << at;
    }
  }
}

// A block of the cache in a format, at an odd multiple of two bytes, with what its rows decode to.
struct CacheBlock {
  CacheBlock(const Kernels& kernels, CacheFormat format, const Floats& x, int64_t count, int64_t n)
      : bytes(static_cast<size_t>(cache_block_bytes(format, n) + 4)), values(x.size()) {
    data = bytes.data() + (format == CacheFormat::kF32 ? 4 : 2);
    for (int64_t i = 0; i < count; ++i) kernels.attention[static_cast<int>(format)].store(data, i, x.data() + i * n, n);
    for (int64_t i = 0; i < count; ++i) {
      for (int64_t d = 0; d < n; ++d) values[static_cast<size_t>(i * n + d)] = decode(format, i, d, n);
    }
  }
  float decode(CacheFormat format, int64_t position, int64_t d, int64_t n) const {
    const uint8_t* group = data + position / 4 * cache_group_bytes(format, n);
    const int64_t row = position % 4;
    uint16_t half;
    float value;
    switch (format) {
      case CacheFormat::kF32: std::memcpy(&value, group + (d / 4 * 16 + row * 4 + d % 4) * 4, 4); return value;
      case CacheFormat::kF16: std::memcpy(&half, group + (d / 4 * 16 + row / 2 * 8 + d % 4 * 2 + row % 2) * 2, 2); return f16_to_f32(half);
      default:
        std::memcpy(&half, group + blocks_of(n) * 128 + d / 32 * 8 + 2 * row, 2);
        return static_cast<float>(static_cast<int8_t>(group[d / 8 * 32 + row * 8 + d % 8])) * f16_to_f32(half);
    }
  }
  std::vector<uint8_t> bytes;
  uint8_t* data;
  std::vector<double> values;
};

class Cache : public testing::TestWithParam<CacheFormat> {
 protected:
  // Error of a stored value relative to the largest, and beside it: q8's scales are multiples of 2^-24.
  double relative() const { return GetParam() == CacheFormat::kF32 ? 1e-7 : GetParam() == CacheFormat::kF16 ? 5e-4 : 4.5e-3; }
  double absolute() const { return GetParam() == CacheFormat::kQ8 ? 127 * 0x1p-25 : 0x1p-24; }
};

TEST_P(Cache, HoldsItsValuesAsTheSpecificationSays) {
  for (const int64_t n : {1, 4, 6, 31, 32, 33, 64, 128}) {
    for (const double size : {1e-6, 1.0, 1000.0}) {
      const Floats x = random_floats(7 * n, 10, size);
      const CacheBlock block(scalar_kernels(), GetParam(), x, 7, n);
      for (size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(block.values[i], x[i], size * relative() + absolute());
      for (const Kernels* kernels : kVariants) ASSERT_EQ(CacheBlock(*kernels, GetParam(), x, 7, n).bytes, block.bytes) << kernels->name;
    }
  }
}

TEST_P(Cache, KeepsLargeAndZeroRowsFinite) {
  for (const float value : {0.0f, 65504.0f, 1e30f, -1e30f}) {
    const CacheBlock block(scalar_kernels(), GetParam(), Floats(32, value), 1, 32);
    for (const double stored : block.values) EXPECT_TRUE(std::isfinite(stored)) << value;
    for (const Kernels* kernels : kVariants) EXPECT_EQ(CacheBlock(*kernels, GetParam(), Floats(32, value), 1, 32).bytes, block.bytes);
  }
}

TEST_P(Cache, ScoresAreScaledDotProductsForEveryNumberOfQueriesAndKeys) {
  for (const int64_t n : {2, 6, 8, 32, 60, 64, 128, 260}) {  // 260: more than is converted for many queries
    for (const int64_t queries : {1, 2, 3, 4, 7}) {
      for (const int64_t count : {4, 8, 64}) {
        const Floats q = random_floats(queries * n, 10);
        const CacheBlock keys(scalar_kernels(), GetParam(), random_floats(count * n, 11), count, n);
        std::vector<double> expected;
        for (int64_t r = 0; r < queries; ++r) {
          for (int64_t i = 0; i < count; ++i) {
            double sum = 0;
            for (int64_t d = 0; d < n; ++d) sum += q[static_cast<size_t>(r * n + d)] * keys.values[static_cast<size_t>(i * n + d)];
            expected.push_back(sum * 0.25);
          }
        }
        const auto run = [&](const Kernels& kernels) {
          const Kernels::Attention& attention = kernels.attention[static_cast<int>(GetParam())];
          std::vector<uint8_t> prepared(static_cast<size_t>(queries * query_bytes(n)), 0xff);
          for (int64_t r = 0; r < queries; ++r) attention.prepare(prepared.data() + r * query_bytes(n), q.data() + r * n, n, 0.25f);
          Floats y = nans(queries * count);
          attention.scores(y.data(), count, prepared.data(), queries, keys.data, count, n);
          return y;
        };
        // q8 rounds the query as well, to a 254th of its largest value.
        check(run, expected, 1e-5, GetParam() == CacheFormat::kQ8 ? 0.25 * static_cast<double>(n) / 254 : 1e-5);
      }
    }
  }
}

TEST_P(Cache, MixAddsWeightedValuesToWhatIsThere) {
  for (const int64_t n : {1, 2, 15, 16, 17, 32, 60, 128, 260}) {
    for (const int64_t queries : {1, 2, 3, 4, 7}) {
      for (const int64_t count : {0, 4, 12}) {
        const Floats out = random_floats(queries * n, 13), weights = random_floats(queries * count, 14);
        const CacheBlock values(scalar_kernels(), GetParam(), random_floats(count * n, 15), count, n);
        std::vector<double> expected(out.begin(), out.end());
        for (int64_t r = 0; r < queries; ++r) {
          for (int64_t i = 0; i < count; ++i) {
            for (int64_t d = 0; d < n; ++d) {
              expected[static_cast<size_t>(r * n + d)] += static_cast<double>(weights[static_cast<size_t>(r * count + i)]) * values.values[static_cast<size_t>(i * n + d)];
            }
          }
        }
        const auto run = [&](const Kernels& kernels) {
          const Kernels::Attention& attention = kernels.attention[static_cast<int>(GetParam())];
          Floats y = out, scaled = weights;
          kernels.scale(scaled.data(), queries * count, attention.value_factor);
          attention.mix(y.data(), scaled.data(), count, queries, values.data, count, n);
          return y;
        };
        check(run, expected, 1e-5, 1e-5);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, Cache, testing::Values(CacheFormat::kF32, CacheFormat::kF16, CacheFormat::kQ8),
                         [](const auto& info) { return kCacheFormatNames[static_cast<int>(info.param)]; });

TEST(Formats, FindTheFirstValueThatIsNotFinite) {
  for (const Format format : {Format::kF32, Format::kF16, Format::kBF16}) {
    const FormatInfo& info = format_info(format);
    const int64_t count = 600, width = bytes_of(format, 1);
    const Stored stored(format, count, 3);
    EXPECT_EQ(info.find_not_finite(stored.data, count), -1) << info.name;
    for (const int64_t at : {0, 1, 255, 256, 599}) {
      Stored broken = Stored(format, count, 3);
      std::memset(broken.data + at * width, 0xff, static_cast<size_t>(width));
      EXPECT_EQ(info.find_not_finite(broken.data, count), at) << info.name;
      EXPECT_EQ(info.find_not_finite(broken.data, at), -1) << info.name;
    }
  }
}

TEST(Variants, HaveKernelsOfTheirOwn) {
  EXPECT_STREQ(scalar_kernels().name, "scalar");
  EXPECT_STREQ(simd_kernels().name, "simd");
  EXPECT_STREQ(relaxed_kernels().name, "relaxed");
  const auto functions = [](const Kernels& k) {
    std::vector<const void*> all;
    const auto add = [&](auto... pointers) { (all.push_back(reinterpret_cast<const void*>(pointers)), ...); };
    for (const Kernels::Panel& p : k.panels) add(p.quantize, p.matmul);
    add(k.matmul[0], k.matmul[1], k.matmul[2], k.rms_norm, k.rope, k.silu_mul, k.add, k.scale, k.exponentials);
    for (const Kernels::Attention& a : k.attention) add(a.store, a.prepare, a.scores, a.mix);
    return all;
  };
  const auto scalar = functions(scalar_kernels());
  for (const Kernels* kernels : {&simd_kernels(), &relaxed_kernels(), &relaxed_wide_kernels()}) {
    for (size_t i = 0; const void* function : functions(*kernels)) EXPECT_NE(function, scalar[i++]) << kernels->name << ": kernel " << i << " is the scalar one";
  }
  for (const Format format : {Format::kQ4, Format::kQ4M}) EXPECT_NE(relaxed_kernels().panel(format).matmul, simd_kernels().panel(format).matmul);
  EXPECT_NE(relaxed_kernels().panel(Format::kQ4).matmul, relaxed_wide_kernels().panel(Format::kQ4).matmul);
}

}  // namespace
}  // namespace qwasm
