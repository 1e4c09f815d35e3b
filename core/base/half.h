// float16 (IEEE 754 binary16) and bfloat16 as they stand in files: 16-bit patterns, and their exact float32 values.
#pragma once

#include <bit>
#include <cstdint>

namespace qwasm {

inline float bf16_to_f32(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

// Exact for every finite value, subnormals included. Infinity and NaN become large finite numbers (65,536 and more): the loader
// refuses them before, so the hot path need not look.
inline float f16_to_f32(uint16_t bits) {
  const uint32_t magnitude = static_cast<uint32_t>(bits & 0x7fff) << 13;
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
  return std::bit_cast<float>(std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) * 0x1p112f) | sign);
}

// The nearest float16, ties to even; infinity from 65,520 on.
inline uint16_t f32_to_f16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value), magnitude = bits & 0x7fffffff;
  const auto sign = static_cast<uint16_t>(bits >> 16 & 0x8000);
  if (magnitude >= 0x477ff000) return sign | 0x7c00;
  if (magnitude < 0x38800000) {  // below 2^-14: adding 0.5 rounds to a multiple of 2^-24 in the low bits
    const float rounded = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(rounded) - 0x3f000000));
  }
  const uint32_t rounded = magnitude + 0xfff + (magnitude >> 13 & 1);
  return static_cast<uint16_t>(sign | ((rounded - 0x38000000) >> 13));
}

}  // namespace qwasm
