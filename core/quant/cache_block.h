// Keys and values as the cache keeps them: blocks of kCachePositions rows of n values, a row for each position. This is their specification.
//
// Four rows take turns, so that a kernel that works on four at once reads on and on; n is filled up with zeros to whole steps:
//   f32  (64, n / 4, 4 rows, 4) float32
//   f16  (64, n / 4, 2 pairs of rows, 4 columns, 2 rows) float16; values beyond 65,504 become 65,536
//   q8   64 times: (n / 32, 4, 4 rows, 8) int8, then (n / 32, 4 rows) float16: scale = max|x| / 127 of 32 values
#pragma once

#include <cstdint>

#include "core/quant/panel.h"

namespace qwasm {

enum class CacheFormat : uint8_t { kF32, kF16, kQ8 };

constexpr const char* kCacheFormatNames[] = {"f32", "f16", "q8"};

constexpr int64_t kCachePositions = 256;

// Bytes of four rows.
constexpr int64_t cache_group_bytes(CacheFormat format, int64_t n) {
  const int64_t steps = (n + 3) / 4 * 4;
  return format == CacheFormat::kF32 ? 16 * steps : format == CacheFormat::kF16 ? 8 * steps : 4 * blocks_of(n) * (kBlockColumns + 2);
}

constexpr int64_t cache_block_bytes(CacheFormat format, int64_t n) { return kCachePositions / 4 * cache_group_bytes(format, n); }

}  // namespace qwasm
