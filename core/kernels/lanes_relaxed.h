// The vocabulary of lanes_simd.h with the products of 4-bit panels by relaxed SIMD: int8 activations times 0 … 15, sixteen at once. One signed operand and
// one below 128 is what every engine computes exactly; a probe in JavaScript checks it before a relaxed module is fetched.
#pragma once

#include "core/kernels/lanes_simd.h"

namespace qwasm::relaxed {

using namespace lanes_simd;

// Sums of two neighbouring products, (8) int16.
inline v128_t dot_pairs(v128_t x, v128_t w) {
#ifdef __wasm_relaxed_simd__
  return wasm_i16x8_relaxed_dot_i8x16_i7x16(x, w);
#else
  const v128_t low = wasm_i16x8_extmul_low_i8x16(x, w), high = wasm_i16x8_extmul_high_i8x16(x, w);
  return wasm_i16x8_add(wasm_i16x8_shuffle(low, high, 0, 2, 4, 6, 8, 10, 12, 14), wasm_i16x8_shuffle(low, high, 1, 3, 5, 7, 9, 11, 13, 15));
#endif
}

// sum + the sums of four neighbouring products, (4) int32.
inline v128_t dot_quads(v128_t x, v128_t w, v128_t sum) {
#ifdef __wasm_relaxed_simd__
  return wasm_i32x4_relaxed_dot_i8x16_i7x16_add(x, w, sum);
#else
  return wasm_i32x4_add(sum, wasm_i32x4_extadd_pairwise_i16x8(dot_pairs(x, w)));
#endif
}

// Eight sums of pairs stay below 8 · 2 · 127 · 15 = 30,480, so they add up in int16 and are widened once. One instruction a step on x86.
struct Pairs {
  static v128_t add_product(v128_t sum, v128_t x, v128_t w) { return wasm_i16x8_add(sum, dot_pairs(x, w)); }
  static v128_t add(v128_t a, v128_t b) { return wasm_i16x8_add(a, b); }
  static I4 widen(v128_t sum) { return wasm_i32x4_extadd_pairwise_i16x8(sum); }
};

// One instruction a step on ARM, and on x86 where an engine uses VNNI.
struct Quads {
  static v128_t add_product(v128_t sum, v128_t x, v128_t w) { return dot_quads(x, w, sum); }
  static v128_t add(v128_t a, v128_t b) { return wasm_i32x4_add(a, b); }
  static I4 widen(v128_t sum) { return sum; }
};

struct Layout {
  static constexpr int kGroups = 2;
  static constexpr int64_t kExpandedBytes = 256;

  // As int8, four times: once for each row of a group.
  static void spread(uint8_t* place, I4 values) {
    const v128_t words = wasm_i16x8_narrow_i32x4(values, values);
    wasm_v128_store(place, wasm_i8x16_narrow_i16x8(words, words));
  }
};

template <typename Sums>
struct Q4By : Layout {
  static void expand(const uint8_t* w, uint8_t* out, const Masks& masks) {
    for (int i = 0; i < 8; ++i) {
      const v128_t bytes = wasm_v128_load(w + 16 * i);
      wasm_v128_store(out + 16 * i, wasm_v128_and(bytes, masks.nibbles));
      wasm_v128_store(out + 128 + 16 * i, wasm_v128_and(wasm_u16x8_shr(bytes, 4), masks.nibbles));
    }
  }

  template <int kTokens>
  static void expanded_block(const uint8_t* w, const uint8_t* x, I4 (*sums)[2]) {
    v128_t groups[kTokens][2];
    multiply_tile<kTokens, kExpandedBytes>(w, x, groups, Sums::add_product);
    for (int t = 0; t < kTokens; ++t) {
      for (int g = 0; g < 2; ++g) sums[t][g] = Sums::widen(groups[t][g]);
    }
  }

  template <int kTokens>
  static void direct_block(const uint8_t* w, int64_t, const uint8_t* x, I4 (*sums)[2], const Masks& masks) {
    v128_t groups[kTokens][2] = {};
#pragma GCC unroll 1
    for (const uint8_t* end = w + 128; w != end; w += 32, x += 16 * kTokens) {
      const v128_t first = wasm_v128_load(w), second = wasm_v128_load(w + 16);
      multiply_pair<kTokens>(wasm_v128_and(first, masks.nibbles), wasm_v128_and(second, masks.nibbles), x, groups, Sums::add_product);
      multiply_pair<kTokens>(wasm_v128_and(wasm_u16x8_shr(first, 4), masks.nibbles), wasm_v128_and(wasm_u16x8_shr(second, 4), masks.nibbles), x + 64 * kTokens,
                             groups, Sums::add_product);
    }
    for (int t = 0; t < kTokens; ++t) {
      for (int g = 0; g < 2; ++g) sums[t][g] = Sums::widen(groups[t][g]);
    }
  }

  static void block(const uint8_t* w, const uint8_t* x, I4* sums, const Masks& masks) {
    v128_t low[2], high[2];
#pragma GCC unroll 8
    for (int j = 0; j < 4; ++j) {
      const v128_t first = wasm_v128_load(x + 16 * j), second = wasm_v128_load(x + 64 + 16 * j);
#pragma GCC unroll 2
      for (int g = 0; g < 2; ++g) {
        const v128_t bytes = wasm_v128_load(w + 32 * j + 16 * g);
        const v128_t a = wasm_v128_and(bytes, masks.nibbles), b = wasm_v128_and(wasm_u16x8_shr(bytes, 4), masks.nibbles);
        low[g] = Sums::add_product(j == 0 ? wasm_i32x4_splat(0) : low[g], first, a);
        high[g] = Sums::add_product(j == 0 ? wasm_i32x4_splat(0) : high[g], second, b);
      }
    }
    for (int g = 0; g < 2; ++g) sums[g] = Sums::widen(Sums::add(low[g], high[g]));
  }
};

}  // namespace qwasm::relaxed

namespace qwasm::lanes_relaxed {
using namespace lanes_simd;
using Q4Words = relaxed::Q4By<relaxed::Pairs>;
}  // namespace qwasm::lanes_relaxed

namespace qwasm::lanes_relaxed_wide {
using namespace lanes_simd;
using Q4Words = relaxed::Q4By<relaxed::Quads>;
}  // namespace qwasm::lanes_relaxed_wide
