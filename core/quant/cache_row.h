// Keys and values as the cache keeps them, a row (one head at one position) each. This is their specification.
//
//   f32  n float32
//   f16  n float16; values beyond 65,504 become 65,536
//   q8   blocks of 32 values: 32 int8 (zeros past n), and behind all of them a float16 scale for each: scale = max|x| / 127
#pragma once

#include <cstdint>

#include "core/quant/panel.h"

namespace qwasm {

enum class CacheFormat : uint8_t { kF32, kF16, kQ8 };

constexpr const char* kCacheFormatNames[] = {"f32", "f16", "q8"};

constexpr int64_t cache_row_bytes(CacheFormat format, int64_t n) {
  return format == CacheFormat::kF32 ? 4 * n : format == CacheFormat::kF16 ? 2 * n : blocks_of(n) * (kBlockColumns + 2);
}

}  // namespace qwasm
