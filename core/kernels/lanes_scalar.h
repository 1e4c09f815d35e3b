// The vocabulary of the kernels in plain C++: four float lanes in an array. Every word rounds once, as its SIMD twin does.
#pragma once

#include <bit>
#include <cstdint>

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
// min and max give the second operand where either is NaN, as x86 does.
inline F4 min(F4 a, F4 b) {
  return each([&](int i) { return a.v[i] < b.v[i] ? a.v[i] : b.v[i]; });
}
inline F4 max(F4 a, F4 b) {
  return each([&](int i) { return a.v[i] > b.v[i] ? a.v[i] : b.v[i]; });
}
// a · 2^n, where n stands in the low bits of the pattern of `n`; a and the result must be normal.
inline F4 scale_by_power(F4 a, F4 n) {
  return each([&](int i) { return std::bit_cast<float>(std::bit_cast<uint32_t>(a.v[i]) + (std::bit_cast<uint32_t>(n.v[i]) << 23)); });
}
// The sum of the lanes, as a fixed tree.
inline float sum(F4 a) { return (a.v[0] + a.v[2]) + (a.v[1] + a.v[3]); }

// ---- whole numbers, for panels of eight rows (quant/panel.h)

struct I4 {
  int32_t v[4];
};

inline F4 to_float(I4 a) {
  return each([&](int i) { return static_cast<float>(a.v[i]); });
}
inline I4 subtract(I4 a, int32_t b) { return {{a.v[0] - b, a.v[1] - b, a.v[2] - b, a.v[3] - b}}; }

// Four float16 scales times 2^-112, exactly.
inline F4 load_scales(const uint8_t* p) {
  return each([&](int i) {
    const auto bits = static_cast<uint32_t>(p[2 * i] | p[2 * i + 1] << 8);
    return std::bit_cast<float>((bits & 0x7fff) << 13 | (bits & 0x8000) << 16);
  });
}

// Weight of row r (of four), column k (of a block) in an expanded group of four rows: two rows of four columns a vector.
inline int expanded_place(int r, int k) { return k / 4 * 16 + r * 4 + k % 4; }

// A block of a panel as int16: two groups of four rows (128 values each).
inline void expand_q8(const uint8_t* w, int16_t* out) {
  for (int g = 0; g < 2; ++g) {
    for (int r = 0; r < 4; ++r) {
      for (int k = 0; k < 32; ++k) out[128 * g + expanded_place(r, k)] = static_cast<int8_t>(w[k / 4 * 32 + 16 * g + 4 * r + k % 4]);
    }
  }
}
inline void expand_q4(const uint8_t* w, int16_t* out) {
  for (int g = 0; g < 2; ++g) {
    for (int r = 0; r < 4; ++r) {
      for (int k = 0; k < 32; ++k) out[128 * g + expanded_place(r, k)] = w[k % 16 / 4 * 32 + 16 * g + 4 * r + k % 4] >> (k < 16 ? 0 : 4) & 15;
    }
  }
}

// sums[t]: the products of an expanded group's four rows with a block of each of kTokens tokens, `stride` int16 apart.
template <int kTokens>
inline void expanded_block(const int16_t* w, const int16_t* x, int64_t stride, I4* sums) {
  for (int t = 0; t < kTokens; ++t) {
    for (int r = 0; r < 4; ++r) {
      int32_t sum = 0;
      for (int k = 0; k < 32; ++k) sum += w[expanded_place(r, k)] * x[t * stride + k / 4 * 8 + k % 4];
      sums[t].v[r] = sum;
    }
  }
}

// The products of a panel's eight rows with one token's block.
inline void q8_block(const uint8_t* w, const int16_t* x, I4* sums) {
  int16_t expanded[256];
  expand_q8(w, expanded);
  for (int g = 0; g < 2; ++g) expanded_block<1>(expanded + 128 * g, x, 0, sums + g);
}
inline void q4_block(const uint8_t* w, const int16_t* x, I4* sums) {
  int16_t expanded[256];
  expand_q4(w, expanded);
  for (int g = 0; g < 2; ++g) expanded_block<1>(expanded + 128 * g, x, 0, sums + g);
}

}  // namespace qwasm::lanes_scalar
