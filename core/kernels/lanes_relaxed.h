// The vocabulary of lanes_simd.h with q4's products by relaxed SIMD: int8 activations times 0 … 15, sixteen at once. One signed operand and
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
  v128_t sum;
  void start(v128_t x, v128_t w) { sum = dot_pairs(x, w); }
  void go_on(v128_t x, v128_t w) { sum = wasm_i16x8_add(sum, dot_pairs(x, w)); }
  void join(Pairs other) { sum = wasm_i16x8_add(sum, other.sum); }
  I4 end() const { return wasm_i32x4_extadd_pairwise_i16x8(sum); }
};

// One instruction a step on ARM, and on x86 where an engine uses VNNI.
struct Quads {
  v128_t sum;
  void start(v128_t x, v128_t w) { sum = dot_quads(x, w, wasm_i32x4_splat(0)); }
  void go_on(v128_t x, v128_t w) { sum = dot_quads(x, w, sum); }
  void join(Quads other) { sum = wasm_i32x4_add(sum, other.sum); }
  I4 end() const { return sum; }
};

template <typename Sums>
struct Q4By {
  static constexpr int kGroups = 2;
  static constexpr int64_t kExpandedBytes = 256;

  // As int8, four times: once for each row of a group.
  static void spread(uint8_t* place, I4 values) {
    const v128_t words = wasm_i16x8_narrow_i32x4(values, values);
    wasm_v128_store(place, wasm_i8x16_narrow_i16x8(words, words));
  }

  static void expand(const uint8_t* w, uint8_t* out, const Masks& masks) {
    for (int i = 0; i < 8; ++i) {
      const v128_t bytes = wasm_v128_load(w + 16 * i);
      wasm_v128_store(out + 16 * i, wasm_v128_and(bytes, masks.nibbles));
      wasm_v128_store(out + 128 + 16 * i, wasm_v128_and(wasm_u16x8_shr(bytes, 4), masks.nibbles));
    }
  }

  template <int kTokens>
  static void expanded_block(const uint8_t* w, const uint8_t* x, I4 (*sums)[2]) {
    Sums s[kTokens][2];
    for (auto& of_token : s) of_token[0].sum = of_token[1].sum = wasm_i32x4_splat(0);
    // Unrolled whole, LLVM computes one sum after the other, and spills the weights that they share.
#pragma GCC unroll 1
    for (const uint8_t* end = w + 256; w != end; w += 64, x += 32 * kTokens) {
#pragma GCC unroll 2
      for (int j = 0; j < 2; ++j) {
        const v128_t rows[2] = {wasm_v128_load(w + 32 * j), wasm_v128_load(w + 32 * j + 16)};
#pragma GCC unroll 8
        for (int t = 0; t < kTokens; ++t) {
          const v128_t columns = wasm_v128_load(x + 16 * (kTokens * j + t));
#pragma GCC unroll 2
          for (int g = 0; g < 2; ++g) s[t][g].go_on(columns, rows[g]);
        }
      }
    }
    for (int t = 0; t < kTokens; ++t) {
      for (int g = 0; g < 2; ++g) sums[t][g] = s[t][g].end();
    }
  }

  static void block(const uint8_t* w, const uint8_t* x, I4* sums, const Masks& masks) {
    Sums low[2], high[2];
#pragma GCC unroll 8
    for (int j = 0; j < 4; ++j) {
      const v128_t first = wasm_v128_load(x + 16 * j), second = wasm_v128_load(x + 64 + 16 * j);
#pragma GCC unroll 2
      for (int g = 0; g < 2; ++g) {
        const v128_t bytes = wasm_v128_load(w + 32 * j + 16 * g);
        const v128_t a = wasm_v128_and(bytes, masks.nibbles), b = wasm_v128_and(wasm_u16x8_shr(bytes, 4), masks.nibbles);
        j == 0 ? low[g].start(first, a) : low[g].go_on(first, a);
        j == 0 ? high[g].start(second, b) : high[g].go_on(second, b);
      }
    }
    for (int g = 0; g < 2; ++g) {
      low[g].join(high[g]);
      sums[g] = low[g].end();
    }
  }
};

}  // namespace qwasm::relaxed

namespace qwasm::lanes_relaxed {
using namespace lanes_simd;
constexpr const char* kName = "relaxed";
using Q4Words = relaxed::Q4By<relaxed::Pairs>;
}  // namespace qwasm::lanes_relaxed

namespace qwasm::lanes_relaxed_wide {
using namespace lanes_simd;
constexpr const char* kName = "relaxed";
using Q4Words = relaxed::Q4By<relaxed::Quads>;
}  // namespace qwasm::lanes_relaxed_wide
