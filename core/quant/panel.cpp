// Makes panels, of floats or of stored blocks, and decodes them.
#include "core/quant/panel.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <span>

#include "core/base/half.h"

namespace qwasm {

namespace {

// Four rows at a time: lane r of a vector belongs to row r. Every row's sums run over its columns in one order, so the bits do not
// depend on the width of the machine's vectors.
using F4 __attribute__((vector_size(16))) = float;
using U4 __attribute__((vector_size(16))) = uint32_t;

constexpr int kBlock = static_cast<int>(kBlockColumns);

// Adding it leaves the nearest whole number (ties to even) in a float's low bits, for |x| < 2^22.
constexpr float kRound = 0x1.8p23f;

F4 splat(float x) { return F4{x, x, x, x}; }
F4 min(F4 a, F4 b) { return b < a ? b : a; }
F4 max(F4 a, F4 b) { return a < b ? b : a; }

// A block's 32 columns of four rows.
struct Columns {
  F4 w[kBlock];
};

// Whole numbers q from `smallest` to `largest` stand for scale · q.
struct Limits {
  F4 smallest, largest;
};

F4 whole(F4 scaled, const Limits& limits) { return min(max((scaled + kRound) - kRound, limits.smallest), limits.largest); }

// Each row's weight of the largest magnitude; the positive one on ties.
F4 find_extreme(const Columns& block) {
  F4 low{}, high{};
  for (const F4& w : block.w) {
    low = min(low, w);
    high = max(high, w);
  }
  return -low > high ? low : high;
}

// Σ w q and Σ q² for q = the weights times `inverse`, rounded. Two partial sums each, so that additions need not wait for each other.
struct Fit {
  F4 wq, qq;
};
Fit fit(const Columns& block, F4 inverse, const Limits& limits) {
  F4 wq[2] = {}, qq[2] = {};
  for (int k = 0; k < kBlock; k += 2) {
    for (int i = 0; i < 2; ++i) {
      const F4 w = block.w[k + i], q = whole(w * inverse, limits);
      wq[i] += w * q;
      qq[i] += q * q;
    }
  }
  return {wq[0] + wq[1], qq[0] + qq[1]};
}

// The scales found so far. For given q the best scale is Σ w q / Σ q², and the squared error it leaves is Σ w² - (Σ w q)² / Σ q². So the
// largest (Σ w q)² / Σ q² wins.
struct Search {
  const Columns& block;
  const Limits& limits;
  F4 gain{}, scale{};

  void consider(F4 inverse) {
    const Fit found = fit(block, inverse, limits);
    const F4 candidate = found.wq / found.qq, candidate_gain = found.wq * candidate;  // NaN, which is not larger, where all q are 0
    const auto better = candidate_gain > gain;
    gain = better ? candidate_gain : gain;
    scale = better ? candidate : scale;
  }
};

// Candidates put the extreme weight at each target; the scale that is best for the winner's q is a last one. 0 where all weights are 0.
// (On the demo model these eight leave 0.2 % more squared error than three hundred do.)
F4 search_scales(const Columns& block, Format format, const Limits& limits) {
  static constexpr float kQ8[] = {127}, kQ4[] = {-8, -9, -8.5f, -7.5f, -7, -6.5f, 7, 7.5f};
  const F4 reciprocal = 1 / find_extreme(block);
  Search search{block, limits};
  const std::span<const float> targets = format == Format::kQ4 ? std::span<const float>(kQ4) : kQ8;
  for (const float target : targets) search.consider(target * reciprocal);
  search.consider(1 / search.scale);
  return search.scale;
}

// Rounds the scales to float16, the bits to `halves`. Gives their reciprocals; 0 for a scale of 0, so that its row becomes zeros.
F4 store_scales(F4 scales, uint8_t* halves) {
  F4 inverse{};
  for (int r = 0; r < 4; ++r) {
    const uint16_t half = f32_to_f16(scales[r]);
    const float scale = f16_to_f32(half);
    inverse[r] = scale == 0 ? 0 : 1 / scale;
    std::memcpy(halves + 2 * r, &half, 2);
  }
  return inverse;
}

// The low bytes of four columns' whole numbers side by side in each row's lane.
U4 low_bytes(const F4* q, uint32_t mask) {
  U4 bytes{};
  for (int c = 0; c < 4; ++c) bytes |= (std::bit_cast<U4>(q[c] + kRound) & mask) << 8 * c;
  return bytes;
}

void encode_group(const Columns& block, Format format, uint8_t* values, uint8_t* halves) {
  const bool q4 = format == Format::kQ4;
  const Limits limits = q4 ? Limits{splat(-8), splat(7)} : Limits{splat(-127), splat(127)};
  const F4 inverse = store_scales(search_scales(block, format, limits), halves);
  F4 q[kBlock];
  for (int k = 0; k < kBlock; ++k) q[k] = whole(block.w[k] * inverse, limits);
  if (q4) {
    for (F4& value : q) value += 8;
    for (int j = 0; j < 4; ++j) {
      const U4 bytes = low_bytes(q + 4 * j, 15) | low_bytes(q + 16 + 4 * j, 15) << 4;
      std::memcpy(values + 32 * j, &bytes, 16);
    }
  } else {
    for (int j = 0; j < 8; ++j) {
      const U4 bytes = low_bytes(q + 4 * j, 255);
      std::memcpy(values + 32 * j, &bytes, 16);
    }
  }
}

// Four rows of whole blocks, `stride` floats apart.
void load_columns(const float* rows, int64_t stride, Columns* block) {
  for (int k = 0; k < kBlock; ++k) block->w[k] = F4{rows[k], rows[stride + k], rows[2 * stride + k], rows[3 * stride + k]};
}

// Where the value of a row and a column stands in a block; of four bits columns 16 … 31 share the bytes of 0 … 15.
int64_t value_place(int64_t row, int64_t column) { return column / 4 * 32 + row / 4 * 16 + row % 4 * 4 + column % 4; }

// Number n of a row's block, of a format whose numbers are float32.
int64_t number_place(Format format, int64_t row, int64_t n) { return block_value_bytes(format) + (n * kPanelRows + row) * 4; }

// Makes values and one scale of values, factors and unit. int8 holds -128, but not the 128 that Q3_K's factors can give (they cannot give
// -128): then scale and values change their signs.
float fold_factors(Codes* codes) {
  int products[kBlock];
  bool turned = false;
  for (int i = 0; i < kBlock; ++i) {
    products[i] = codes->factors[i / 16] * codes->values[i];
    turned |= products[i] == 128;
  }
  for (int i = 0; i < kBlock; ++i) codes->values[i] = static_cast<int8_t>(turned ? -products[i] : products[i]);
  return turned ? -codes->unit : codes->unit;
}

void pack_row(Format format, Codes codes, int64_t row, uint8_t* block) {
  if (block_numbers(format) == 1) {
    const uint16_t scale = f32_to_f16(fold_factors(&codes));
    std::memcpy(block + block_value_bytes(format) + row * 2, &scale, sizeof scale);
  }
  for (int n = 0; block_numbers(format) > 1 && n < block_numbers(format); ++n) {
    const float number = n % 2 == 0 ? codes.scale(n / 2) : codes.minimums[n / 2];
    std::memcpy(block + number_place(format, row, n), &number, sizeof number);
  }
  int8_t* values = codes.values;
  if (has_four_bits(format)) {
    const int offset = format == Format::kQ4 ? 8 : 0;
    for (int i = 0; i < 16; ++i) values[i] = static_cast<int8_t>((values[i] + offset) | (values[16 + i] + offset) << 4);
  }
  for (int i = 0; i < (has_four_bits(format) ? 16 : 32); i += 4) std::memcpy(block + value_place(row, i), values + i, 4);
}

// A row's block as scales, minimums and values.
struct RowBlock {
  float scales[2], minimums[2];  // of both halves
  int values[kBlock];
};
RowBlock read_row_block(Format format, const uint8_t* block, int64_t row) {
  RowBlock found;
  const bool has_minimum = block_numbers(format) > 1;
  for (int half = 0; half < 2; ++half) {
    const int n = format == Format::kQ8M ? 2 * half : 0;
    if (has_minimum) {
      std::memcpy(&found.scales[half], block + number_place(format, row, n), sizeof(float));
      std::memcpy(&found.minimums[half], block + number_place(format, row, n + 1), sizeof(float));
    } else {
      uint16_t scale;
      std::memcpy(&scale, block + block_value_bytes(format) + row * 2, 2);
      found.scales[half] = f16_to_f32(scale);
      found.minimums[half] = -0.0f;  // adding it changes nothing
    }
  }
  for (int i = 0; i < kBlock; ++i) {
    found.values[i] = has_four_bits(format) ? (block[value_place(row, i % 16)] >> i / 16 * 4 & 15) - (format == Format::kQ4 ? 8 : 0)
                                            : static_cast<int8_t>(block[value_place(row, i)]);
  }
  return found;
}

}  // namespace

void encode_panel(Format format, const float* weights, int64_t rows, int64_t columns, uint8_t* panel) {
  for (int64_t b = 0; b < blocks_of(columns); ++b, panel += block_bytes(format)) {
    const int64_t begin = b * kBlockColumns, count = std::min(kBlockColumns, columns - begin);
    const float* block_rows = weights + begin;
    int64_t stride = columns;
    float filled[kPanelRows * kBlockColumns] = {};
    if (rows < kPanelRows || count < kBlockColumns) {
      for (int64_t r = 0; r < rows; ++r) std::copy_n(block_rows + r * columns, count, filled + r * kBlockColumns);
      block_rows = filled;
      stride = kBlockColumns;
    }
    for (int g = 0; g < 2; ++g) {
      Columns block;
      load_columns(block_rows + 4 * g * stride, stride, &block);
      encode_group(block, format, panel + 16 * g, panel + block_value_bytes(format) + 8 * g);
    }
  }
}

void pack_panel(const FormatInfo& stored, const uint8_t* blocks, int64_t rows, int64_t columns, uint8_t* panel) {
  const int64_t parts = stored.elements_per_block / kBlockColumns, row_bytes = bytes_of(stored.format, columns);
  std::memset(panel, 0, static_cast<size_t>(panel_bytes(stored.panel, columns)));
  for (int64_t b = 0; b < blocks_of(columns); ++b, panel += block_bytes(stored.panel)) {
    for (int64_t r = 0; r < rows; ++r) {
      Codes codes;
      stored.read(blocks + r * row_bytes + b / parts * stored.bytes_per_block, static_cast<int>(b % parts), &codes);
      pack_row(stored.panel, codes, r, panel);
    }
  }
}

void decode_panel_row(Format format, const uint8_t* panels, int64_t row, int64_t columns, float* values) {
  const uint8_t* block = panels + row / kPanelRows * panel_bytes(format, columns);
  for (int64_t at = 0; at < columns; at += kBlockColumns, block += block_bytes(format)) {
    const RowBlock found = read_row_block(format, block, row % kPanelRows);
    for (int64_t i = 0; i < std::min(kBlockColumns, columns - at); ++i) {
      values[at + i] = found.scales[i / 16] * static_cast<float>(found.values[i]) + found.minimums[i / 16];
    }
  }
}

}  // namespace qwasm
