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

}  // namespace qwasm
