// q8 and q4: weights in panels of eight rows, in blocks of 32 columns with a float16 scale each. This is their specification.
//
// A panel holds, block after block, the values of its eight rows and then their eight scales:
//   q8 (272 bytes a block): 16 bytes at 32 j + 16 g (j < 8, g < 2): byte 4 r + c is row 4 g + r, column 4 j + c; -127 … 127
//   q4 (144 bytes a block): 16 bytes at 32 j + 16 g (j < 4, g < 2): byte 4 r + c has row 4 g + r, column 4 j + c in its low half and
//                           column 16 + 4 j + c in its high half; 0 … 15 stands for -8 … 7
// A weight is scale · value. Lanes are rows: a kernel needs no sums across a vector, and every row adds its blocks in order.
// Rows past the end and columns past the end are zeros.
#pragma once

#include <cstdint>

#include "core/quant/format.h"

namespace qwasm {

constexpr int64_t kPanelRows = 8;
constexpr int64_t kBlockColumns = 32;

constexpr int64_t blocks_of(int64_t columns) { return (columns + kBlockColumns - 1) / kBlockColumns; }
constexpr int64_t panels_of(int64_t rows) { return (rows + kPanelRows - 1) / kPanelRows; }

constexpr int64_t block_value_bytes(Format format) { return format == Format::kQ8 ? kPanelRows * kBlockColumns : kPanelRows * kBlockColumns / 2; }
constexpr int64_t block_bytes(Format format) { return block_value_bytes(format) + kPanelRows * 2; }
inline int64_t panel_bytes(Format format, int64_t columns) { return blocks_of(columns) * block_bytes(format); }

// Raised with every change of what encode_panel makes of the same weights: panels that were kept are then made anew.
constexpr int kPanelVersion = 1;

// Bytes of a (rows, columns) matrix in memory.
inline int64_t matrix_bytes(Format format, int64_t rows, int64_t columns) {
  return is_panel(format) ? panels_of(rows) * panel_bytes(format, columns) : bytes_of(format, rows * columns);
}

// Makes a panel of `rows` (1 … 8) rows of float32, (rows, columns) row-major. Scales are searched for the least squared error.
void encode_panel(Format format, const float* weights, int64_t rows, int64_t columns, uint8_t* panel);

// Row `row` of a matrix of panels as float32.
void decode_panel_row(Format format, const uint8_t* panels, int64_t row, int64_t columns, float* values);

}  // namespace qwasm
