// The formats that weights are stored in, one row each: names, sizes, what 'stored' makes of them, and the scalar decoding that specifies them.
//
// Floats stand in memory as in their file. GGUF's block types are whole numbers with scales (quant/codes.h); each has a panel (quant/panel.h)
// that holds its values exactly, and the rows themselves may stay as they are: then a product decodes them as it goes (exact mode).
//
//   type                        bits a weight   panel, bits
//   Q8_0                        8.5             q8, 8.5
//   Q5_0, IQ4_NL, Q3_K          5.5, 4.5, 3.4   q8, 8.5    whole numbers of 8 bits and one float16 scale per 32 hold their products
//   Q4_0                        4.5             q4, 4.5
//   Q4_1, Q4_K                  5, 4.5          q4m, 6   Q4_K's scales, 6 bits times float16, want float32
//   Q5_1, Q5_K                  6, 5.5          q8m, 12
//   Q6_K, Q2_K                  6.6, 2.6        q8m, 12  scales (Q6_K: 8 bits times float16) or minimums per 16
//   MXFP4                       4.25            q8m, 12  its scale has float32's range
// (Of Q6_K the nearest values in q8 would lose up to 1 / 254 of a block's largest; these lose nothing.)
#pragma once

#include <cstdint>
#include <string_view>

#include "core/quant/codes.h"

namespace qwasm {

// Floats, GGUF's block types, and panels of rows, which are made while loading.
enum class Format : uint8_t {
  kF32, kF16, kBF16,
  kQ8_0, kQ4_0, kQ4_1, kQ5_0, kQ5_1, kQ2_K, kQ3_K, kQ4_K, kQ5_K, kQ6_K, kIQ4_NL, kMXFP4,
  kQ8, kQ4, kQ4M, kQ8M,
};

constexpr int kFloatFormats = 3, kFirstPanel = static_cast<int>(Format::kQ8), kPanelFormats = 4;

constexpr bool is_float(Format format) { return format <= Format::kBF16; }
constexpr bool is_panel(Format format) { return format >= Format::kQ8; }

// Place of a panel format in arrays of them.
constexpr int panel_index(Format format) { return static_cast<int>(format) - kFirstPanel; }

class FormatSet {
 public:
  constexpr FormatSet() = default;
  constexpr explicit FormatSet(Format format) { add(format); }
  constexpr void add(Format format) { bits_ |= 1u << static_cast<int>(format); }
  constexpr bool has(Format format) const { return bits_ >> static_cast<int>(format) & 1; }
  constexpr bool has_panels() const { return bits_ >> kFirstPanel != 0; }
  constexpr bool has_blocks() const { return (bits_ & ((1u << kFirstPanel) - 1)) >> kFloatFormats != 0; }
  constexpr bool only_floats() const { return bits_ >> kFloatFormats == 0; }

 private:
  uint32_t bits_ = 0;
};

// A format that stands in files.
struct FormatInfo {
  Format format, panel;  // what 'stored' makes of it; of floats themselves
  const char* name;      // in safetensors headers, and GGUF's
  int gguf_type;         // its number in GGUF files
  int elements_per_block;
  int bytes_per_block;
  int halves_at, halves;  // where a block has its float16 scales, and how many
  ReadCodes read;         // of block types

  // `count` elements, a multiple of elements_per_block.
  void decode(const void* blocks, int64_t count, float* values) const;
  // Index of the first element among `count` that is NaN or infinite, of block types of the first in a block with such a scale; or -1.
  int64_t find_not_finite(const void* blocks, int64_t count) const;
};

// Of a format that stands in files.
const FormatInfo& format_info(Format format);

// The format of that safetensors name, or of that type number of GGUF; or null.
const FormatInfo* find_format(std::string_view safetensors_name);
const FormatInfo* find_gguf_format(int64_t type);

inline int64_t bytes_of(Format format, int64_t elements) {
  const FormatInfo& info = format_info(format);
  return elements / info.elements_per_block * info.bytes_per_block;
}

}  // namespace qwasm
