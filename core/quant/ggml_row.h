// Rows of q8 and q4 panels as GGML stores them: the same values in another order.
#pragma once

#include <cstdint>

#include "core/quant/panel.h"

namespace qwasm {

// Bytes of a row's block of 32 columns: a float16 scale, then
//   q8 as Q8_0: 32 bytes, column after column
//   q4 as Q4_0: 16 bytes; byte i has column i in its low half and column 16 + i in its high half, 0 … 15 for -8 … 7
constexpr int64_t ggml_block_bytes(Format format) { return 2 + block_value_bytes(format) / kPanelRows; }

// Row `row` of a matrix of panels. Its columns must be whole blocks.
void write_ggml_row(Format format, const uint8_t* panels, int64_t row, int64_t columns, uint8_t* blocks);

}  // namespace qwasm
