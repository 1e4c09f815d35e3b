// The formats that weights are stored in, one row each: name, sizes and the scalar decoding that specifies it.
#pragma once

#include <cstdint>
#include <string_view>

namespace qwasm {

// F32, F16 and BF16 stand in files and in memory as rows; Q8 and Q4 are made while loading, as panels of rows (quant/panel.h).
enum class Format : uint8_t { kF32, kF16, kBF16, kQ8, kQ4 };

inline bool is_panel(Format format) { return format == Format::kQ8 || format == Format::kQ4; }

struct FormatInfo {
  Format format;
  const char* name;       // in safetensors headers
  int elements_per_block;
  int bytes_per_block;
  void (*decode)(const void* blocks, int64_t count, float* values);  // `count` elements, a multiple of elements_per_block
  // Index of the first NaN or infinity among `count` elements, or -1.
  int64_t (*find_not_finite)(const void* blocks, int64_t count);
};

// Of a format that stands in files.
const FormatInfo& format_info(Format format);

// The format of that safetensors name, or null.
const FormatInfo* find_format(std::string_view safetensors_name);

inline int64_t bytes_of(Format format, int64_t elements) {
  const FormatInfo& info = format_info(format);
  return elements / info.elements_per_block * info.bytes_per_block;
}

}  // namespace qwasm
