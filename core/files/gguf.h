// The header of a GGUF file (versions 2 and 3): metadata as typed views, and which tensor stands where. No weights are read here.
//
// magic "GGUF" · version (4 bytes) · tensor count (8) · metadata count (8) · metadata: key, type (4), value · tensors: name,
// dimensions (4), extents innermost first (8 each), storage type (4), offset (8) · padding to general.alignment · the tensors' data.
// A string is its length (8) and its bytes; an array its elements' type (4), their count (8) and the elements. All is little-endian.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/packed_strings.h"
#include "core/base/status.h"
#include "core/files/json_view.h"
#include "core/files/safetensors.h"

namespace qwasm {

enum class GgufType : uint32_t { kU8, kI8, kU16, kI16, kU32, kI32, kF32, kBool, kString, kArray, kU64, kI64, kF64 };

// A value in the header's bytes. Of a string: its text. Of an array: its elements, of which there are `count`.
struct GgufValue {
  GgufType type = GgufType::kU8;
  GgufType element = GgufType::kU8;
  uint64_t count = 0;
  std::string_view bytes;
};

class GgufMetadata {
 public:
  // Null where there is no such key.
  const GgufValue* find(std::string_view key) const;

  // An absent key leaves *out as it is; a value of another kind is kInvalidFile. `where` begins the sentence.
  Status text(const std::string& where, std::string_view key, std::string_view* out) const;
  Status integer(const std::string& where, std::string_view key, int64_t* out) const;
  Status boolean(const std::string& where, std::string_view key, bool* out) const;
  Status strings(const std::string& where, std::string_view key, PackedStrings* out) const;

  // Sorted by key.
  const std::vector<std::pair<std::string_view, GgufValue>>& entries() const { return entries_; }

 private:
  friend class GgufReader;
  std::vector<std::pair<std::string_view, GgufValue>> entries_;
};

// A number, boolean or text as JSON, an array as an array of them. What is longer than any field of a config is cut short.
Json gguf_json(const GgufValue& value);

struct GgufHeader {
  GgufMetadata metadata;                                // views into the bytes that were parsed
  std::vector<std::pair<std::string, TensorInfo>> tensors;  // in the order of their data
  int64_t bytes = 0;                                    // of the header, without padding
};

constexpr int64_t kFirstGgufWant = 1 << 20;
constexpr int64_t kLargestGgufHeader = 128 << 20;  // Qwen3's has 6 MB: its tokens and merges

// Reads the header in the first `bytes` of `file`, which has `file_size` bytes (-1: unknown). Where they do not reach, *needed is how many do
// at least, and nothing else is set; else it is 0.
Status parse_gguf_header(std::span<const char> bytes, const std::string& file, int64_t file_size, GgufHeader* header, int64_t* needed);

// A model may be split: model-00001-of-00003.gguf.
struct GgufSplit {
  int64_t number = 0, count = 1;  // this file's, from 0
  int64_t tensors = -1;           // in all files; -1: not told
};
Status read_gguf_split(const GgufMetadata& metadata, const std::string& file, GgufSplit* split);

// The name of part `number` (from 0) of `count`, by the name of any; empty where `file` is not named like a part of so many.
std::string gguf_part_name(const std::string& file, int64_t number, int64_t count);

}  // namespace qwasm
