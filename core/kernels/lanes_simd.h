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

}  // namespace qwasm::lanes_simd
