// Writes GGUF files in memory, right or wrong ones, byte for byte as a test wants them.
#pragma once

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace qwasm::gguf_test {

// The numbers of the format.
enum MetadataType : uint32_t { kU8, kI8, kU16, kI16, kU32, kI32, kF32, kBool, kString, kArray, kU64, kI64, kF64 };
enum StorageType : uint32_t { kStoredF32 = 0, kStoredF16 = 1, kStoredQ4_0 = 2, kStoredQ8_0 = 8, kStoredIQ2_XS = 17 };

inline std::string number(auto value) { return std::string(reinterpret_cast<const char*>(&value), sizeof value); }
inline std::string text(std::string_view value) { return number(uint64_t{value.size()}) + std::string(value); }

struct Tensor {
  std::string name;
  std::vector<uint64_t> extents;  // innermost first
  uint32_t type = kStoredF32;
  uint64_t offset = 0;
};

struct File {
  std::string magic = "GGUF";
  uint32_t version = 3;
  std::vector<std::string> entries;
  std::vector<Tensor> tensors;
  uint64_t entry_count = UINT64_MAX, tensor_count = UINT64_MAX;  // UINT64_MAX: the true ones
  size_t alignment = 32, data_bytes = 0;

  File& add(std::string_view key, uint32_t type, const std::string& value) {
    entries.push_back(text(key) + number(type) + value);
    return *this;
  }
  File& add(std::string_view key, std::string_view value) { return add(key, kString, text(value)); }
  File& add(std::string_view key, uint32_t value) { return add(key, kU32, number(value)); }
  File& add_array(std::string_view key, uint32_t element, uint64_t count, const std::string& elements) {
    return add(key, kArray, number(element) + number(count) + elements);
  }
  File& add_texts(std::string_view key, std::initializer_list<std::string_view> values) {
    std::string elements;
    for (const std::string_view value : values) elements += text(value);
    return add_array(key, kString, values.size(), elements);
  }

  std::string header() const {
    std::string bytes = magic + number(version);
    bytes += number(tensor_count == UINT64_MAX ? uint64_t{tensors.size()} : tensor_count);
    bytes += number(entry_count == UINT64_MAX ? uint64_t{entries.size()} : entry_count);
    for (const std::string& entry : entries) bytes += entry;
    for (const Tensor& tensor : tensors) {
      bytes += text(tensor.name) + number(static_cast<uint32_t>(tensor.extents.size()));
      for (const uint64_t extent : tensor.extents) bytes += number(extent);
      bytes += number(tensor.type) + number(tensor.offset);
    }
    return bytes;
  }

  std::string bytes() const {
    std::string all = header();
    all.resize((all.size() + alignment - 1) / alignment * alignment + data_bytes);
    return all;
  }
};

}  // namespace qwasm::gguf_test
