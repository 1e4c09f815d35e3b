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

}  // namespace qwasm::lanes_scalar
