// Keys and values of one sequence. Memory comes in blocks of kBlock positions as the sequence grows, not for the whole context at once.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/buffer.h"
#include "core/model/config.h"
#include "core/quant/cache_row.h"

namespace qwasm {

class KvCache {
 public:
  static constexpr int64_t kBlock = 64;  // positions; 7.3 MB for Qwen3-0.6B in float16

  KvCache(const Config& config, CacheFormat format)
      : format_(format), layers_(config.num_hidden_layers), heads_(config.num_key_value_heads), row_bytes_(cache_row_bytes(format, config.head_dim)) {}

  CacheFormat format() const { return format_; }

  // Makes room for positions 0 … count - 1; what is there stays.
  Status reserve(int64_t count) {
    while (capacity() < count) {
      Buffer<uint8_t> block;
      QW_TRY(block.allocate(static_cast<uint64_t>(2 * layers_ * heads_ * kBlock * row_bytes_), "64 more positions of the KV cache"));
      blocks_.push_back(std::move(block));
    }
    return {};
  }

  int64_t capacity() const { return static_cast<int64_t>(blocks_.size()) * kBlock; }

  // The row of a head at a position (quant/cache_row.h); those of a block's positions follow each other.
  uint8_t* key(int64_t layer, int64_t head, int64_t position) { return at(2 * layer, head, position); }
  uint8_t* value(int64_t layer, int64_t head, int64_t position) { return at(2 * layer + 1, head, position); }

  static int64_t bytes_per_token(const Config& config, CacheFormat format) {
    return 2 * config.num_hidden_layers * config.num_key_value_heads * cache_row_bytes(format, config.head_dim);
  }

 private:
  uint8_t* at(int64_t plane, int64_t head, int64_t position) {
    Buffer<uint8_t>& block = blocks_[static_cast<size_t>(position / kBlock)];
    return block.data() + ((plane * heads_ + head) * kBlock + position % kBlock) * row_bytes_;
  }

  CacheFormat format_;
  int64_t layers_, heads_, row_bytes_;
  std::vector<Buffer<uint8_t>> blocks_;
};

}  // namespace qwasm
