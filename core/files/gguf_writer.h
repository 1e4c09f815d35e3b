// Writes the head of a GGUF file (version 3): keys with their values, then the list of tensors.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace qwasm {

// Numbers of tensors' types in GGUF files.
enum class GgmlType : uint32_t { kF32 = 0, kF16 = 1, kQ4_0 = 2, kQ8_0 = 8 };

// Every tensor begins at a multiple of this, counted from the first one.
constexpr int64_t kGgufAlignment = 32;

// The same calls are made twice: without memory they only count bytes and keys, which the head's beginning and its allocation need.
// A key that begins with a dot is the architecture's own: ".block_count" stands as "qwen3.block_count".
class GgufWriter {
 public:
  GgufWriter(std::string_view architecture, uint8_t* out) : architecture_(architecture), out_(out) {}

  size_t bytes() const { return bytes_; }
  uint64_t keys() const { return keys_; }

  void begin(uint64_t tensors, uint64_t keys) {
    put("GGUF", 4);
    number<uint32_t>(3);
    number(tensors);
    number(keys);
  }

  void add_u32(const char* key, int64_t value) { add_bits(key, 4, static_cast<uint32_t>(value)); }
  void add_i32(const char* key, int64_t value) { add_bits(key, 5, static_cast<uint32_t>(value)); }
  void add_f32(const char* key, double value) { add_bits(key, 6, std::bit_cast<uint32_t>(static_cast<float>(value))); }
  void add_bool(const char* key, bool value) {
    begin_key(key, 7);
    number<uint8_t>(value);
  }
  void add_string(const char* key, std::string_view value) {
    begin_key(key, 8);
    string(value);
  }

  // An array's items follow: string() or number<int32_t>(), as many as were promised.
  void begin_strings(const char* key, int64_t count) { begin_array(key, 8, count); }
  void begin_i32s(const char* key, int64_t count) { begin_array(key, 5, count); }

  void string(std::string_view text) {
    number<uint64_t>(text.size());
    put(text.data(), text.size());
  }

  template <typename T>
  void number(T value) {
    put(&value, sizeof value);
  }

  // `dimensions`: the fastest first, which is a matrix's columns. `offset`: from the first tensor.
  void add_tensor(std::string_view name, std::span<const int64_t> dimensions, GgmlType type, int64_t offset) {
    string(name);
    number(static_cast<uint32_t>(dimensions.size()));
    for (const int64_t dimension : dimensions) number(dimension);
    number(type);
    number(offset);
  }

  void pad() {
    while (bytes_ % kGgufAlignment != 0) number<uint8_t>(0);
  }

 private:
  void put(const void* data, size_t size) {
    if (out_ && size > 0) std::memcpy(out_ + bytes_, data, size);
    bytes_ += size;
  }

  void begin_key(const char* key, uint32_t type) {
    const std::string_view own = key[0] == '.' ? architecture_ : std::string_view(), rest = key;
    number<uint64_t>(own.size() + rest.size());
    put(own.data(), own.size());
    put(rest.data(), rest.size());
    number(type);
    ++keys_;
  }

  void add_bits(const char* key, uint32_t type, uint32_t bits) {
    begin_key(key, type);
    number(bits);
  }

  void begin_array(const char* key, uint32_t type, int64_t count) {
    begin_key(key, 9);
    number(type);
    number(count);
  }

  std::string_view architecture_;
  uint8_t* out_;
  size_t bytes_ = 0;
  uint64_t keys_ = 0;
};

}  // namespace qwasm
