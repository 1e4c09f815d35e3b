// The headers of safetensors files and the index of a sharded model: which tensor stands where. No weights are read here.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/quant/format.h"

namespace qwasm {

// One tensor of a file.
struct TensorInfo {
  std::string file;
  std::string dtype;                    // as the header spells it
  const FormatInfo* format = nullptr;   // null: a dtype that qwasm does not read
  std::vector<int64_t> shape;
  int64_t begin = 0, end = 0;           // bytes from the start of the file
};

using TensorTable = std::map<std::string, TensorInfo, std::less<>>;

// A file begins with eight bytes: the length of the header, little-endian.
constexpr int64_t kSafetensorsPrefix = 8;
constexpr int64_t kLargestSafetensorsHeader = 32 << 20;  // Qwen3-235B's shards have less than 1 MiB

// Reads those eight bytes (or fewer, of a file that is cut). `file_size` -1: unknown.
Status parse_safetensors_prefix(std::span<const char> bytes, const std::string& file, int64_t file_size, int64_t* header_length);

// Reads the header (JSON: name → dtype, shape, data_offsets) and adds its tensors to `table`. Offsets must cover the file without
// gaps, overlaps or remainder, as the format's specification demands.
Status parse_safetensors_header(std::span<const char> bytes, const std::string& file, int64_t file_size, TensorTable* table);

// Reads model.safetensors.index.json: tensor name → file name inside the same folder.
Status parse_shard_index(std::span<const char> bytes, const std::string& file, std::map<std::string, std::string>* weight_map);

}  // namespace qwasm
