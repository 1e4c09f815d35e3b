// The vocabulary of the kernels in plain C++: four float lanes in an array. Every word rounds once, as its SIMD twin does.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

#include "core/base/half.h"

namespace qwasm::lanes_scalar {

constexpr const char* kName = "scalar";

struct F4 {
  float v[4];
};

template <typename F>
inline F4 each(F f) {
  return {{f(0), f(1), f(2), f(3)}};
}

inline F4 splat(float x) { return {{x, x, x, x}}; }
inline F4 load(const float* p) { return {{p[0], p[1], p[2], p[3]}}; }
inline F4 load_bf16(const uint16_t* p) {
  return each([&](int i) { return bf16_to_f32(p[i]); });
}
inline F4 load_f16(const uint16_t* p) {
  return each([&](int i) { return f16_to_f32(p[i]); });
}
inline void store(float* p, F4 a) {
  for (int i = 0; i < 4; ++i) p[i] = a.v[i];
}

inline F4 add(F4 a, F4 b) {
  return each([&](int i) { return a.v[i] + b.v[i]; });
}
inline F4 sub(F4 a, F4 b) {
  return each([&](int i) { return a.v[i] - b.v[i]; });
}
inline F4 mul(F4 a, F4 b) {
  return each([&](int i) { return a.v[i] * b.v[i]; });
}
inline F4 div(F4 a, F4 b) {
  return each([&](int i) { return a.v[i] / b.v[i]; });
}
// min and max give the first operand where either is NaN.
inline F4 min(F4 a, F4 b) {
  return each([&](int i) { return b.v[i] < a.v[i] ? b.v[i] : a.v[i]; });
}
inline F4 max(F4 a, F4 b) {
  return each([&](int i) { return a.v[i] < b.v[i] ? b.v[i] : a.v[i]; });
}
inline F4 abs(F4 a) {
  return each([&](int i) { return __builtin_fabsf(a.v[i]); });
}
// a · 2^n, where n stands in the low bits of the pattern of `n`; a and the result must be normal.
inline F4 scale_by_power(F4 a, F4 n) {
  return each([&](int i) { return std::bit_cast<float>(std::bit_cast<uint32_t>(a.v[i]) + (std::bit_cast<uint32_t>(n.v[i]) << 23)); });
}
// The sum of the lanes, as a fixed tree.
inline float sum(F4 a) { return (a.v[0] + a.v[2]) + (a.v[1] + a.v[3]); }

// Those of four vectors, a lane each.
inline F4 sum4(const F4* a) {
  return each([&](int i) { return sum(a[i]); });
}
// The largest lane, by the same tree.
inline float highest(F4 a) {
  const auto larger = [](float x, float y) { return x < y ? y : x; };
  return larger(larger(a.v[0], a.v[2]), larger(a.v[1], a.v[3]));
}

// Constants that SIMD wants to keep in registers; here there are none.
struct Masks {};
inline Masks load_masks() { return {}; }

// A float16 times 2^-112, exactly.
inline float small_f16(uint32_t bits) { return std::bit_cast<float>((bits & 0x7fff) << 13 | (bits & 0x8000) << 16); }
inline F4 load_small_f16(const uint8_t* p, Masks) {
  return each([&](int i) { return small_f16(static_cast<uint32_t>(p[2 * i] | p[2 * i + 1] << 8)); });
}

// ---- whole numbers

struct I4 {
  int32_t v[4];
};

inline F4 to_float(I4 a) {
  return each([&](int i) { return static_cast<float>(a.v[i]); });
}
// The whole number in the low bits of x + 1.5 · 2^23.
inline I4 to_whole(F4 shifted) {
  I4 whole;
  for (int i = 0; i < 4; ++i) whole.v[i] = static_cast<int32_t>(std::bit_cast<uint32_t>(shifted.v[i]) - 0x4b400000u);
  return whole;
}
inline I4 splat_whole(int32_t a) { return {{a, a, a, a}}; }
// Sums wrap, as SIMD's do: what stands in for a NaN is no small number.
inline int32_t wrapping_sum(int32_t a, int32_t b) { return static_cast<int32_t>(static_cast<uint32_t>(a) + static_cast<uint32_t>(b)); }
inline I4 add_whole(I4 a, I4 b) {
  for (int i = 0; i < 4; ++i) a.v[i] = wrapping_sum(a.v[i], b.v[i]);
  return a;
}
inline I4 subtract(I4 a, int32_t b) { return add_whole(a, splat_whole(-b)); }
inline int32_t sum_whole(I4 a) { return wrapping_sum(wrapping_sum(a.v[0], a.v[1]), wrapping_sum(a.v[2], a.v[3])); }

// ---- the cache's rows

struct F4Pair {
  F4 first, second;
};
// Eight float16 times 2^-112, which take turns between two vectors.
inline F4Pair load_small_f16_pair(const uint16_t* p, Masks) {
  return {each([&](int i) { return small_f16(p[2 * i]); }), each([&](int i) { return small_f16(p[2 * i + 1]); })};
}

inline void store_int8(uint8_t* p, I4 a) {
  for (int i = 0; i < 4; ++i) p[i] = static_cast<uint8_t>(a.v[i]);
}
inline void store_int16(uint8_t* p, I4 a) {
  for (int i = 0; i < 4; ++i) {
    const auto value = static_cast<int16_t>(a.v[i]);
    std::memcpy(p + 2 * i, &value, 2);
  }
}
// Products of eight int8 and eight int16; a lane has the sum of two neighbours.
inline I4 dot8(const uint8_t* a, const uint8_t* b) {
  I4 sums{};
  for (int i = 0; i < 8; ++i) {
    int16_t value;
    std::memcpy(&value, b + 2 * i, 2);
    sums.v[i / 2] += static_cast<int8_t>(a[i]) * value;
  }
  return sums;
}
inline F4Pair load_int8(const uint8_t* p) {
  return {each([&](int i) { return static_cast<float>(static_cast<int8_t>(p[i])); }), each([&](int i) { return static_cast<float>(static_cast<int8_t>(p[4 + i])); })};
}

// ---- panels of eight rows (quant/panel.h)

// The products of a panel's block with activations, by a format: how the values of a block of activations are laid out (spread), the
// products of one token with eight rows, and of a tile of tokens with kGroups groups of four rows, of an expanded block or of one as it stands.
// Products are of kColumns columns: of a whole block, or of a half at a time.
struct Layout {
  static constexpr int kGroups = 1;
  static constexpr int64_t kExpandedBytes = 512;

  // Four columns' values to their place in a block of activations: as int16, twice.
  static void spread(uint8_t* place, I4 values) {
    store_int16(place, values);
    store_int16(place + 8, values);
  }

  static int column(const uint8_t* x, int k, int tokens) {
    int16_t value;
    std::memcpy(&value, x + k / 4 * 16 * tokens + k % 4 * 2, 2);
    return value;
  }

  // Weight of row r (of four), column k in an expanded group of four rows: two rows of four columns a vector.
  static int place(int r, int k) { return k / 4 * 16 + r * 4 + k % 4; }
};

template <int kColumns>
struct Words : Layout {
  // x: of a tile of kTokens tokens.
  template <int kTokens>
  static void expanded_block(const uint8_t* w, const uint8_t* x, I4 (*sums)[1]) {
    for (int t = 0; t < kTokens; ++t) {
      for (int r = 0; r < 4; ++r) {
        int32_t sum = 0;
        for (int k = 0; k < kColumns; ++k) {
          int16_t weight;
          std::memcpy(&weight, w + 2 * place(r, k), 2);
          sum += weight * column(x + 16 * t, k, kTokens);
        }
        sums[t][0].v[r] = sum;
      }
    }
  }
};

// `weight(w, g, r, k)`: of row r in group g, column k.
template <int kColumns, typename Weight>
inline void expand_groups(const uint8_t* w, uint8_t* out, Weight weight) {
  for (int g = 0; g < 2; ++g) {
    for (int r = 0; r < 4; ++r) {
      for (int k = 0; k < kColumns; ++k) {
        const auto value = static_cast<int16_t>(weight(w, g, r, k));
        std::memcpy(out + 8 * kColumns * g + 2 * Layout::place(r, k), &value, 2);
      }
    }
  }
}

// The products of Type's weights, which are expanded first.
template <typename Type, int kColumns>
struct Expanding : Words<kColumns> {
  static void expand(const uint8_t* w, uint8_t* out, Masks) { expand_groups<32>(w, out, Type::weight); }

  template <int kTokens>
  static void direct_block(const uint8_t* w, int64_t group, const uint8_t* x, I4 (*sums)[1], Masks) {
    uint8_t expanded[Layout::kExpandedBytes];
    expand_groups<kColumns>(w, expanded, Type::weight);
    Words<kColumns>::template expanded_block<kTokens>(expanded + 8 * kColumns * group, x, sums);
  }
  static void block(const uint8_t* w, const uint8_t* x, I4* sums, Masks masks) {
    for (int g = 0; g < 2; ++g) direct_block<1>(w, g, x, reinterpret_cast<I4(*)[1]>(sums + g), masks);
  }
};

template <int kColumns>
struct Q8Words : Expanding<Q8Words<kColumns>, kColumns> {
  static int weight(const uint8_t* p, int g, int r, int k) { return static_cast<int8_t>(p[k / 4 * 32 + 16 * g + 4 * r + k % 4]); }
};

struct Q4Words : Expanding<Q4Words, 32> {
  static int weight(const uint8_t* p, int g, int r, int k) { return p[k % 16 / 4 * 32 + 16 * g + 4 * r + k % 4] >> (k < 16 ? 0 : 4) & 15; }
};

}  // namespace qwasm::lanes_scalar
