// Weights in panels of eight rows, in blocks of 32 columns. This is their specification.
//
// A panel holds, block after block, the values of its eight rows and then their numbers, each eight times, for row after row:
//   q8 (272 bytes a block): 16 bytes at 32 j + 16 g (j < 8, g < 2): byte 4 r + c is row 4 g + r, column 4 j + c; -128 … 127
//                           float16: a scale
//   q4 (144 bytes a block): 16 bytes at 32 j + 16 g (j < 4, g < 2): byte 4 r + c has row 4 g + r, column 4 j + c in its low half and
//                           column 16 + 4 j + c in its high half; 0 … 15 stands for -8 … 7
//                           float16: a scale
//   q4m (192 bytes):      the bytes of q4, where 0 … 15 stands for itself
//                           float32: a scale, a minimum
//   q8m (384 bytes):      the bytes of q8
//                           float32: scale and minimum of the first 16 columns, scale and minimum of the last 16
// A weight is scale · value + minimum. q8 and q4 are made of any weights, q4m and q8m only of stored types, whose values they hold exactly.
// Lanes are rows: a kernel needs no sums across a vector, and every row adds its blocks in order.
// Rows past the end and columns past the end are zeros.
#pragma once

#include <cstdint>

#include "core/quant/format.h"

namespace qwasm {

constexpr int64_t kPanelRows = 8;
constexpr int64_t kBlockColumns = 32;

constexpr int64_t blocks_of(int64_t columns) { return (columns + kBlockColumns - 1) / kBlockColumns; }
constexpr int64_t panels_of(int64_t rows) { return (rows + kPanelRows - 1) / kPanelRows; }

constexpr bool has_four_bits(Format format) { return format == Format::kQ4 || format == Format::kQ4M; }
constexpr int64_t block_value_bytes(Format format) { return kPanelRows * kBlockColumns / (has_four_bits(format) ? 2 : 1); }

// Numbers beside the values of a row's block.
constexpr int64_t block_numbers(Format format) { return format == Format::kQ8M ? 4 : format == Format::kQ4M ? 2 : 1; }
constexpr int64_t block_bytes(Format format) {
  const int64_t numbers = block_numbers(format);
  return block_value_bytes(format) + kPanelRows * numbers * (numbers == 1 ? 2 : 4);
}
inline int64_t panel_bytes(Format format, int64_t columns) { return blocks_of(columns) * block_bytes(format); }

// Raised with every change of what encode_panel makes of the same weights: panels that were kept are then made anew.
constexpr int kPanelVersion = 1;

// Bytes of a (rows, columns) matrix in memory.
inline int64_t matrix_bytes(Format format, int64_t rows, int64_t columns) {
  return is_panel(format) ? panels_of(rows) * panel_bytes(format, columns) : bytes_of(format, rows * columns);
}

// Makes a q8 or q4 panel of `rows` (1 … 8) rows of float32, (rows, columns) row-major. Scales are searched for the least squared error.
void encode_panel(Format format, const float* weights, int64_t rows, int64_t columns, uint8_t* panel);

// Makes a panel of format `stored.panel` of `rows` (1 … 8) rows of a block type: it holds the same values. `columns` is a multiple of 32.
void pack_panel(const FormatInfo& stored, const uint8_t* blocks, int64_t rows, int64_t columns, uint8_t* panel);

// Row `row` of a matrix of panels as float32.
void decode_panel_row(Format format, const uint8_t* panels, int64_t row, int64_t columns, float* values);

}  // namespace qwasm
