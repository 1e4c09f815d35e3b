// Keys and values of one sequence. Memory comes in blocks of kBlock positions as the sequence grows, not for the whole context at once.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/buffer.h"
#include "core/model/config.h"

namespace qwasm {

class KvCache {
 public:
  static constexpr int64_t kBlock = 64;  // positions; 14.7 MB for Qwen3-0.6B in float32

  explicit KvCache(const Config& config)
      : layers_(config.num_hidden_layers), heads_(config.num_key_value_heads), head_dim_(config.head_dim) {}

  // Makes room for positions 0 … count - 1; what is there stays.
  Status reserve(int64_t count) {
    while (capacity() < count) {
      Buffer<float> block;
      QW_TRY(block.allocate(static_cast<uint64_t>(2 * layers_ * heads_ * kBlock * head_dim_), "64 more positions of the KV cache"));
      blocks_.push_back(std::move(block));
    }
    return {};
  }

  int64_t capacity() const { return static_cast<int64_t>(blocks_.size()) * kBlock; }

  // (head_dim) at a position; the positions of a block follow each other.
  float* key(int64_t layer, int64_t head, int64_t position) { return at(2 * layer, head, position); }
  float* value(int64_t layer, int64_t head, int64_t position) { return at(2 * layer + 1, head, position); }

  static int64_t bytes_per_token(const Config& config) {
    return 2 * config.num_hidden_layers * config.key_value_size() * static_cast<int64_t>(sizeof(float));
  }

 private:
  float* at(int64_t plane, int64_t head, int64_t position) {
    Buffer<float>& block = blocks_[static_cast<size_t>(position / kBlock)];
    return block.data() + ((plane * heads_ + head) * kBlock + position % kBlock) * head_dim_;
  }

  int64_t layers_, heads_, head_dim_;
  std::vector<Buffer<float>> blocks_;
};

}  // namespace qwasm
