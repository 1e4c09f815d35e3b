// Keys and values of one sequence. Memory comes in blocks of kBlock positions as the sequence grows, not for the whole context at once.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "core/base/buffer.h"
#include "core/model/config.h"
#include "core/quant/cache_block.h"

namespace qwasm {

class KvCache {
 public:
  static constexpr int64_t kBlock = kCachePositions;  // 29 MB for Qwen3-0.6B in float16

  KvCache(const Config& config, CacheFormat format)
      : format_(format), layers_(config.num_hidden_layers), heads_(config.num_key_value_heads), block_bytes_(cache_block_bytes(format, config.head_dim)) {}

  CacheFormat format() const { return format_; }

  // Makes room for positions 0 … count - 1; what is there stays.
  Status reserve(int64_t count) {
    while (capacity() < count) {
      Buffer<uint8_t> block;
      const char* hint = format_ == CacheFormat::kQ8 ? "a smaller contextLength takes less" : "a smaller contextLength or kv 'q8' takes less";
      QW_TRY(block.allocate(static_cast<uint64_t>(2 * layers_ * heads_ * block_bytes_), "256 more positions of the KV cache", hint));
      std::memset(block.data(), 0, block.size());  // rows that nobody has written are read too, and must be finite
      blocks_.push_back(std::move(block));
    }
    return {};
  }

  void clear() { blocks_.clear(); }

  // A block of all layers: for each the keys and then the values of each head (quant/cache_block.h). Null where there is none.
  uint8_t* block(int64_t index) { return index >= 0 && index < capacity() / kBlock ? blocks_[static_cast<size_t>(index)].data() : nullptr; }

  int64_t capacity() const { return static_cast<int64_t>(blocks_.size()) * kBlock; }

  // The block (quant/cache_block.h) of a head that holds a position.
  uint8_t* keys(int64_t layer, int64_t head, int64_t position) { return at(2 * layer, head, position); }
  uint8_t* values(int64_t layer, int64_t head, int64_t position) { return at(2 * layer + 1, head, position); }

  static int64_t bytes_per_token(const Config& config, CacheFormat format) {
    return 2 * config.num_hidden_layers * config.num_key_value_heads * cache_block_bytes(format, config.head_dim) / kBlock;
  }

 private:
  uint8_t* at(int64_t plane, int64_t head, int64_t position) {
    return blocks_[static_cast<size_t>(position / kBlock)].data() + (plane * heads_ + head) * block_bytes_;
  }

  CacheFormat format_;
  int64_t layers_, heads_, block_bytes_;
  std::vector<Buffer<uint8_t>> blocks_;
};

}  // namespace qwasm
