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
inline F4 min(F4 a, F4 b) { return wasm_v128_bitselect(a, b, wasm_f32x4_lt(a, b)); }
inline F4 max(F4 a, F4 b) { return wasm_v128_bitselect(a, b, wasm_f32x4_gt(a, b)); }
inline F4 scale_by_power(F4 a, F4 n) { return wasm_i32x4_add(a, wasm_i32x4_shl(n, 23)); }
inline float sum(F4 a) {
  return (wasm_f32x4_extract_lane(a, 0) + wasm_f32x4_extract_lane(a, 2)) + (wasm_f32x4_extract_lane(a, 1) + wasm_f32x4_extract_lane(a, 3));
}

// ---- whole numbers, for panels of eight rows (quant/panel.h)

using I4 = v128_t;

inline F4 to_float(I4 a) { return wasm_f32x4_convert_i32x4(a); }
inline I4 subtract(I4 a, int32_t b) { return wasm_i32x4_sub(a, wasm_i32x4_splat(b)); }

inline F4 load_scales(const uint8_t* p) {
  const v128_t bits = wasm_i32x4_shl(wasm_i32x4_load16x4(p), 13);  // the sign fills the upper bits
  return wasm_v128_and(bits, wasm_i32x4_splat(static_cast<int32_t>(0x8fffe000)));
}

// Sums of two rows each (first half, second half of a row's columns) to one sum a lane.
inline I4 join(v128_t rows01, v128_t rows23) {
  return wasm_i32x4_add(wasm_i32x4_shuffle(rows01, rows23, 0, 2, 4, 6), wasm_i32x4_shuffle(rows01, rows23, 1, 3, 5, 7));
}

inline void expand_q8(const uint8_t* w, int16_t* out) {
  for (int g = 0; g < 2; ++g) {
    for (int j = 0; j < 8; ++j) {
      const v128_t bytes = wasm_v128_load(w + 32 * j + 16 * g);
      wasm_v128_store(out + 128 * g + 16 * j, wasm_i16x8_extend_low_i8x16(bytes));
      wasm_v128_store(out + 128 * g + 16 * j + 8, wasm_i16x8_extend_high_i8x16(bytes));
    }
  }
}
inline void expand_q4(const uint8_t* w, int16_t* out) {
  const v128_t mask = wasm_i8x16_splat(15);
  for (int g = 0; g < 2; ++g) {
    for (int j = 0; j < 4; ++j) {
      const v128_t bytes = wasm_v128_load(w + 32 * j + 16 * g);
      const v128_t low = wasm_v128_and(bytes, mask), high = wasm_v128_and(wasm_u16x8_shr(bytes, 4), mask);
      int16_t* place = out + 128 * g + 16 * j;
      wasm_v128_store(place, wasm_u16x8_extend_low_u8x16(low));
      wasm_v128_store(place + 8, wasm_u16x8_extend_high_u8x16(low));
      wasm_v128_store(place + 64, wasm_u16x8_extend_low_u8x16(high));
      wasm_v128_store(place + 72, wasm_u16x8_extend_high_u8x16(high));
    }
  }
}

template <int kTokens>
inline void expanded_block(const int16_t* w, const int16_t* x, int64_t stride, I4* sums) {
  v128_t a[kTokens], b[kTokens];
#pragma GCC unroll 8
  for (int j = 0; j < 8; ++j) {
    const v128_t rows01 = wasm_v128_load(w + 16 * j), rows23 = wasm_v128_load(w + 16 * j + 8);
#pragma GCC unroll 8
    for (int t = 0; t < kTokens; ++t) {
      const v128_t columns = wasm_v128_load(x + t * stride + 8 * j);
      const v128_t p = wasm_i32x4_dot_i16x8(rows01, columns), q = wasm_i32x4_dot_i16x8(rows23, columns);
      a[t] = j == 0 ? p : wasm_i32x4_add(a[t], p);
      b[t] = j == 0 ? q : wasm_i32x4_add(b[t], q);
    }
  }
  for (int t = 0; t < kTokens; ++t) sums[t] = join(a[t], b[t]);
}

inline void q8_block(const uint8_t* w, const int16_t* x, I4* sums) {
  v128_t a[2], b[2];
#pragma GCC unroll 8
  for (int j = 0; j < 8; ++j) {
    const v128_t columns = wasm_v128_load(x + 8 * j);
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

inline void q4_block(const uint8_t* w, const int16_t* x, I4* sums) {
  const v128_t mask = wasm_i8x16_splat(15);
  v128_t a[2], b[2];
#pragma GCC unroll 8
  for (int j = 0; j < 4; ++j) {
    const v128_t first = wasm_v128_load(x + 8 * j), second = wasm_v128_load(x + 32 + 8 * j);
#pragma GCC unroll 8
    for (int g = 0; g < 2; ++g) {
      const v128_t bytes = wasm_v128_load(w + 32 * j + 16 * g);
      const v128_t low = wasm_v128_and(bytes, mask), high = wasm_v128_and(wasm_u16x8_shr(bytes, 4), mask);
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

}  // namespace qwasm::lanes_simd
