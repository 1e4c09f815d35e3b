// Takes rows out of panels, block by block.
#include "core/quant/ggml_row.h"

#include <cstring>

namespace qwasm {

// In panels as in GGML's blocks four columns of a row stand side by side, and q4's halves belong to the same columns in both.
void write_ggml_row(Format format, const uint8_t* panels, int64_t row, int64_t columns, uint8_t* blocks) {
  const int64_t r = row % kPanelRows, values = block_value_bytes(format), quads = values / kPanelRows / 4;
  const uint8_t* block = panels + row / kPanelRows * panel_bytes(format, columns);
  for (int64_t b = 0; b < columns / kBlockColumns; ++b, block += block_bytes(format), blocks += ggml_block_bytes(format)) {
    std::memcpy(blocks, block + values + 2 * r, 2);
    for (int64_t j = 0; j < quads; ++j) std::memcpy(blocks + 2 + 4 * j, block + 32 * j + r * 4, 4);
  }
}

}  // namespace qwasm
