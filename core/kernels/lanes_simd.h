// The vocabulary of the kernels in 128-bit wasm SIMD. (Natively SIMDe supplies the same intrinsics, so sanitizers see this code.)
#pragma once

#include <cstdint>

#ifdef __wasm_simd128__
#include <wasm_simd128.h>
#else
#define SIMDE_ENABLE_NATIVE_ALIASES
#include <simde/wasm/simd128.h>
#endif

namespace qwasm::lanes_simd {

constexpr const char* kName = "simd";

using F4 = v128_t;

inline F4 splat(float x) { return wasm_f32x4_splat(x); }
inline F4 load(const float* p) { return wasm_v128_load(p); }
inline F4 load_bf16(const uint16_t* p) { return wasm_i32x4_shl(wasm_u32x4_load16x4(p), 16); }
inline F4 load_f16(const uint16_t* p) {
  const v128_t bits = wasm_i32x4_load16x4(p);  // the sign is now in all upper bits
  const v128_t magnitude = wasm_i32x4_shl(wasm_v128_and(bits, wasm_i32x4_splat(0x7fff)), 13);
  const v128_t value = wasm_f32x4_mul(magnitude, wasm_f32x4_splat(0x1p112f));
  return wasm_v128_or(value, wasm_v128_and(bits, wasm_i32x4_splat(INT32_MIN)));
}
inline void store(float* p, F4 a) { wasm_v128_store(p, a); }

inline F4 add(F4 a, F4 b) { return wasm_f32x4_add(a, b); }
inline F4 sub(F4 a, F4 b) { return wasm_f32x4_sub(a, b); }
inline F4 mul(F4 a, F4 b) { return wasm_f32x4_mul(a, b); }
inline F4 div(F4 a, F4 b) { return wasm_f32x4_div(a, b); }
inline F4 min(F4 a, F4 b) { return wasm_f32x4_pmin(a, b); }
inline F4 max(F4 a, F4 b) { return wasm_f32x4_pmax(a, b); }
inline F4 abs(F4 a) { return wasm_f32x4_abs(a); }
inline F4 scale_by_power(F4 a, F4 n) { return wasm_i32x4_add(a, wasm_i32x4_shl(n, 23)); }
inline float sum(F4 a) {
  return (wasm_f32x4_extract_lane(a, 0) + wasm_f32x4_extract_lane(a, 2)) + (wasm_f32x4_extract_lane(a, 1) + wasm_f32x4_extract_lane(a, 3));
}

inline F4 sum4(const F4* a) {
  F4 pairs[2];  // l0 + l2 of two vectors, then l1 + l3 of both
  for (int i = 0; i < 2; ++i) {
    pairs[i] = add(wasm_i32x4_shuffle(a[2 * i], a[2 * i + 1], 0, 4, 1, 5), wasm_i32x4_shuffle(a[2 * i], a[2 * i + 1], 2, 6, 3, 7));
  }
  return add(wasm_i32x4_shuffle(pairs[0], pairs[1], 0, 1, 4, 5), wasm_i32x4_shuffle(pairs[0], pairs[1], 2, 3, 6, 7));
}
inline float highest(F4 a) {
  const F4 pairs = max(a, wasm_i32x4_shuffle(a, a, 2, 3, 0, 1));
  const float x = wasm_f32x4_extract_lane(pairs, 0), y = wasm_f32x4_extract_lane(pairs, 1);
  return x < y ? y : x;
}

// Masks that come from memory: V8 makes a constant anew, in three instructions, each time that a loop wants it.
struct Masks {
  v128_t nibbles, small_f16;
};
inline volatile uint32_t mask_patterns[2] = {0x0f0f0f0f, 0x8fffe000};
inline Masks load_masks() {
  return {wasm_i32x4_splat(static_cast<int32_t>(mask_patterns[0])), wasm_i32x4_splat(static_cast<int32_t>(mask_patterns[1]))};
}

inline F4 load_small_f16(const uint8_t* p, const Masks& masks) {
  return wasm_v128_and(wasm_i32x4_shl(wasm_i32x4_load16x4(p), 13), masks.small_f16);  // the sign fills the upper bits
}

// ---- whole numbers

using I4 = v128_t;

inline F4 to_float(I4 a) { return wasm_f32x4_convert_i32x4(a); }
inline I4 to_whole(F4 shifted) { return wasm_i32x4_sub(shifted, wasm_i32x4_splat(0x4b400000)); }
inline I4 splat_whole(int32_t a) { return wasm_i32x4_splat(a); }
inline I4 add_whole(I4 a, I4 b) { return wasm_i32x4_add(a, b); }
inline I4 subtract(I4 a, int32_t b) { return wasm_i32x4_sub(a, wasm_i32x4_splat(b)); }
inline int32_t sum_whole(I4 a) {
  const I4 pairs = wasm_i32x4_add(a, wasm_i32x4_shuffle(a, a, 2, 3, 0, 1));
  return wasm_i32x4_extract_lane(wasm_i32x4_add(pairs, wasm_i32x4_shuffle(pairs, pairs, 1, 0, 3, 2)), 0);
}

// ---- the cache's rows

struct F4Pair {
  F4 first, second;
};
inline F4Pair load_small_f16_pair(const uint16_t* p, const Masks& masks) {
  const v128_t both = wasm_v128_load(p);  // in each lane the first in the low half
  return {wasm_v128_and(wasm_i32x4_shr(wasm_i32x4_shl(both, 16), 3), masks.small_f16), wasm_v128_and(wasm_i32x4_shr(both, 3), masks.small_f16)};
}

inline void store_int8(uint8_t* p, I4 a) {
  const v128_t words = wasm_i16x8_narrow_i32x4(a, a);
  wasm_v128_store32_lane(p, wasm_i8x16_narrow_i16x8(words, words), 0);
}
inline void store_int16(uint8_t* p, I4 a) { wasm_v128_store64_lane(p, wasm_i16x8_narrow_i32x4(a, a), 0); }
inline I4 dot8(const uint8_t* a, const uint8_t* b) { return wasm_i32x4_dot_i16x8(wasm_i16x8_load8x8(a), wasm_v128_load(b)); }
inline F4Pair load_int8(const uint8_t* p) {
  const v128_t words = wasm_i16x8_load8x8(p);
  return {to_float(wasm_i32x4_extend_low_i16x8(words)), to_float(wasm_i32x4_extend_high_i16x8(words))};
}

// ---- panels of eight rows (quant/panel.h); lanes_scalar.h says what the words mean

// Sums of two rows each (first half, second half of a row's columns) to one sum a lane.
inline I4 join(v128_t rows01, v128_t rows23) {
  return wasm_i32x4_add(wasm_i32x4_shuffle(rows01, rows23, 0, 2, 4, 6), wasm_i32x4_shuffle(rows01, rows23, 1, 3, 5, 7));
}

// Adds the products of two vectors of weights with four columns of each token of a tile.
template <int kTokens, typename AddProduct>
inline void multiply_pair(v128_t first, v128_t second, const uint8_t* x, v128_t (*sums)[2], const AddProduct& add_product) {
#pragma GCC unroll 8
  for (int t = 0; t < kTokens; ++t) {
    const v128_t columns = wasm_v128_load(x + 16 * t);
    sums[t][0] = add_product(sums[t][0], columns, first);
    sums[t][1] = add_product(sums[t][1], columns, second);
  }
}

// The products of a part of a group of an expanded block (`kBytes`, pairs of vectors) with as much of a block of a tile of tokens: sums[t][v] is
// add_product's sum over the vectors v of all pairs and the columns of token t.
template <int kTokens, int kBytes, typename AddProduct>
inline void multiply_tile(const uint8_t* w, const uint8_t* x, v128_t (*sums)[2], const AddProduct& add_product) {
  for (int t = 0; t < kTokens; ++t) sums[t][0] = sums[t][1] = wasm_i32x4_splat(0);
  // Unrolled whole, LLVM computes one sum after the other, and spills the weights that they share.
#pragma GCC unroll 1
  for (const uint8_t* end = w + kBytes; w != end; w += 64, x += 32 * kTokens) {
#pragma GCC unroll 2
    for (int j = 0; j < 2; ++j) {
      multiply_pair<kTokens>(wasm_v128_load(w + 32 * j), wasm_v128_load(w + 32 * j + 16), x + 16 * kTokens * j, sums, add_product);
    }
  }
}

struct Layout {
  static constexpr int kGroups = 1;
  static constexpr int64_t kExpandedBytes = 512;

  static void spread(uint8_t* place, I4 values) { wasm_v128_store(place, wasm_i16x8_narrow_i32x4(values, values)); }
};

template <int kColumns>
struct Words : Layout {
  template <int kTokens>
  static void expanded_block(const uint8_t* w, const uint8_t* x, I4 (*sums)[1]) {
    v128_t pairs[kTokens][2];  // rows 0 and 1, rows 2 and 3
    multiply_tile<kTokens, 8 * kColumns>(w, x, pairs, add_product);
    for (int t = 0; t < kTokens; ++t) sums[t][0] = join(pairs[t][0], pairs[t][1]);
  }

  static v128_t add_product(v128_t sum, v128_t columns, v128_t rows) { return wasm_i32x4_add(sum, wasm_i32x4_dot_i16x8(rows, columns)); }
};

template <int kColumns>
struct Q8Words : Words<kColumns> {
  template <int kTokens>
  static void direct_block(const uint8_t* w, int64_t group, const uint8_t* x, I4 (*sums)[1], const Masks&) {
    v128_t pairs[kTokens][2] = {};
    w += 16 * group;
#pragma GCC unroll 1
    for (const uint8_t* end = w + 8 * kColumns; w != end; w += 32, x += 16 * kTokens) {
      multiply_pair<kTokens>(wasm_i16x8_load8x8(w), wasm_i16x8_load8x8(w + 8), x, pairs, Words<kColumns>::add_product);
    }
    for (int t = 0; t < kTokens; ++t) sums[t][0] = join(pairs[t][0], pairs[t][1]);
  }

  static void expand(const uint8_t* w, uint8_t* out, const Masks&) {
    for (int g = 0; g < 2; ++g) {
      for (int j = 0; j < 8; ++j) {
        const v128_t bytes = wasm_v128_load(w + 32 * j + 16 * g);
        wasm_v128_store(out + 256 * g + 32 * j, wasm_i16x8_extend_low_i8x16(bytes));
        wasm_v128_store(out + 256 * g + 32 * j + 16, wasm_i16x8_extend_high_i8x16(bytes));
      }
    }
  }

  static void block(const uint8_t* w, const uint8_t* x, I4* sums, const Masks&) {
    v128_t a[2], b[2];
#pragma GCC unroll 8
    for (int j = 0; j < kColumns / 4; ++j) {
      const v128_t columns = wasm_v128_load(x + 16 * j);
#pragma GCC unroll 8
      for (int g = 0; g < 2; ++g) {
        const uint8_t* place = w + 32 * j + 16 * g;
        const v128_t p = wasm_i32x4_dot_i16x8(wasm_i16x8_load8x8(place), columns);
        const v128_t q = wasm_i32x4_dot_i16x8(wasm_i16x8_load8x8(place + 8), columns);
        a[g] = j == 0 ? p : wasm_i32x4_add(a[g], p);
        b[g] = j == 0 ? q : wasm_i32x4_add(b[g], q);
      }
    }
    for (int g = 0; g < 2; ++g) sums[g] = join(a[g], b[g]);
  }
};

struct Q4Words : Words<32> {
  template <int kTokens>
  static void direct_block(const uint8_t* w, int64_t group, const uint8_t* x, I4 (*sums)[1], const Masks& masks) {
    v128_t pairs[kTokens][2] = {};
    w += 16 * group;
#pragma GCC unroll 1
    for (const uint8_t* end = w + 128; w != end; w += 32, x += 16 * kTokens) {
      const v128_t bytes = wasm_v128_load(w);
      const v128_t low = wasm_v128_and(bytes, masks.nibbles), high = wasm_v128_and(wasm_u16x8_shr(bytes, 4), masks.nibbles);
      multiply_pair<kTokens>(wasm_u16x8_extend_low_u8x16(low), wasm_u16x8_extend_high_u8x16(low), x, pairs, add_product);
      multiply_pair<kTokens>(wasm_u16x8_extend_low_u8x16(high), wasm_u16x8_extend_high_u8x16(high), x + 64 * kTokens, pairs, add_product);
    }
    for (int t = 0; t < kTokens; ++t) sums[t][0] = join(pairs[t][0], pairs[t][1]);
  }

  static void expand(const uint8_t* w, uint8_t* out, const Masks& masks) {
    for (int g = 0; g < 2; ++g) {
      for (int j = 0; j < 4; ++j) {
        const v128_t bytes = wasm_v128_load(w + 32 * j + 16 * g);
        const v128_t low = wasm_v128_and(bytes, masks.nibbles), high = wasm_v128_and(wasm_u16x8_shr(bytes, 4), masks.nibbles);
        uint8_t* place = out + 256 * g + 32 * j;
        wasm_v128_store(place, wasm_u16x8_extend_low_u8x16(low));
        wasm_v128_store(place + 16, wasm_u16x8_extend_high_u8x16(low));
        wasm_v128_store(place + 128, wasm_u16x8_extend_low_u8x16(high));
        wasm_v128_store(place + 144, wasm_u16x8_extend_high_u8x16(high));
      }
    }
  }

  static void block(const uint8_t* w, const uint8_t* x, I4* sums, const Masks& masks) {
    v128_t a[2], b[2];
#pragma GCC unroll 8
    for (int j = 0; j < 4; ++j) {
      const v128_t first = wasm_v128_load(x + 16 * j), second = wasm_v128_load(x + 64 + 16 * j);
#pragma GCC unroll 8
      for (int g = 0; g < 2; ++g) {
        const v128_t bytes = wasm_v128_load(w + 32 * j + 16 * g);
        const v128_t low = wasm_v128_and(bytes, masks.nibbles), high = wasm_v128_and(wasm_u16x8_shr(bytes, 4), masks.nibbles);
        const v128_t p = wasm_i32x4_add(wasm_i32x4_dot_i16x8(wasm_u16x8_extend_low_u8x16(low), first),
                                        wasm_i32x4_dot_i16x8(wasm_u16x8_extend_low_u8x16(high), second));
        const v128_t q = wasm_i32x4_add(wasm_i32x4_dot_i16x8(wasm_u16x8_extend_high_u8x16(low), first),
                                        wasm_i32x4_dot_i16x8(wasm_u16x8_extend_high_u8x16(high), second));
        a[g] = j == 0 ? p : wasm_i32x4_add(a[g], p);
        b[g] = j == 0 ? q : wasm_i32x4_add(b[g], q);
      }
    }
    for (int g = 0; g < 2; ++g) sums[g] = join(a[g], b[g]);
  }
};

}  // namespace qwasm::lanes_simd
