// Encodes and decodes panels.
#include "core/quant/panel.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "core/base/half.h"

namespace qwasm {

namespace {

constexpr int kBlock = static_cast<int>(kBlockColumns);

// A block's 32 weights as whole numbers q and one scale, chosen so that Σ (w - scale · q)² is small.
struct Quantized {
  int8_t values[kBlock];
  uint16_t scale;
};

// Adding it leaves the nearest whole number (ties to even) in a float's low bits, for |x| < 2^22.
constexpr float kRound = 0x1.8p23f;

// The weight of the largest magnitude; the positive one on ties.
float find_extreme(const float* w) {
  float lowest[4] = {}, highest[4] = {};
  for (int i = 0; i < kBlock; i += 4) {
    for (int lane = 0; lane < 4; ++lane) {
      lowest[lane] = w[i + lane] < lowest[lane] ? w[i + lane] : lowest[lane];
      highest[lane] = w[i + lane] > highest[lane] ? w[i + lane] : highest[lane];
    }
  }
  const float low = *std::min_element(lowest, lowest + 4), high = *std::max_element(highest, highest + 4);
  return -low > high ? low : high;
}

// Four partial sums each, so that compilers see vectors; the order is the same everywhere.
struct Fit {
  float wq = 0, qq = 0;  // Σ w q, Σ q²
};
Fit fit(const float* w, float inverse, float smallest, float largest, float* q) {
  float wq[4] = {}, qq[4] = {};
  for (int i = 0; i < kBlock; i += 4) {
    for (int lane = 0; lane < 4; ++lane) {
      const float scaled = w[i + lane] * inverse;
      float whole = (scaled + kRound) - kRound;
      whole = whole < smallest ? smallest : whole;
      whole = whole > largest ? largest : whole;
      q[i + lane] = whole;
      wq[lane] += w[i + lane] * whole;
      qq[lane] += whole * whole;
    }
  }
  return {(wq[0] + wq[2]) + (wq[1] + wq[3]), (qq[0] + qq[2]) + (qq[1] + qq[3])};
}

// For given q the best scale is Σ w q / Σ q², and the squared error it leaves is Σ w² - (Σ w q)² / Σ q². So the candidate with the
// largest (Σ w q)² / Σ q² wins. Candidates put the extreme weight at `extreme` + step for each step.
Quantized quantize(const float* w, Format format) {
  Quantized result{};
  const float extreme = find_extreme(w);
  if (extreme == 0) return result;
  const bool q4 = format == Format::kQ4;
  const float smallest = q4 ? -8 : -127, largest = q4 ? 7 : 127;
  float best = -1, best_scale = 0, best_inverse = 0, q[kBlock];
  const auto consider = [&](float target) {
    const float inverse = target / extreme;
    const Fit found = fit(w, inverse, smallest, largest, q);
    if (found.qq == 0 || found.wq * found.wq <= best * found.qq) return;
    best = found.wq * found.wq / found.qq;
    best_scale = found.wq / found.qq;
    best_inverse = inverse;
  };
  if (q4) {
    for (const float target : {-8.0f, -9.0f, -8.5f, -7.5f, -7.0f, -6.5f, 7.0f, 7.5f}) consider(target);
  } else {
    consider(127);
  }
  const float scale = f16_to_f32(f32_to_f16(best_scale));
  result.scale = f32_to_f16(best_scale);
  if (scale == 0) return Quantized{};
  // With the scale fixed (and rounded to float16), each weight takes its nearest value.
  fit(w, std::isfinite(1 / scale) ? 1 / scale : best_inverse, smallest, largest, q);
  for (int i = 0; i < kBlock; ++i) result.values[i] = static_cast<int8_t>(std::bit_cast<uint32_t>(q[i] + kRound));
  return result;
}

// Four columns of a row stand side by side.
void put(Format format, const Quantized& block, int64_t row, uint8_t* bytes) {
  uint8_t* place = bytes + row / 4 * 16 + row % 4 * 4;
  if (format == Format::kQ8) {
    for (int j = 0; j < 8; ++j) std::memcpy(place + 32 * j, block.values + 4 * j, 4);
  } else {
    for (int j = 0; j < 4; ++j) {
      for (int c = 0; c < 4; ++c) {
        const int low = block.values[4 * j + c] + 8, high = block.values[16 + 4 * j + c] + 8;
        place[32 * j + c] = static_cast<uint8_t>(low | high << 4);
      }
    }
  }
  std::memcpy(bytes + block_value_bytes(format) + row * 2, &block.scale, 2);
}

}  // namespace

void encode_panel(Format format, const float* weights, int64_t rows, int64_t columns, uint8_t* panel) {
  for (int64_t b = 0; b < blocks_of(columns); ++b, panel += block_bytes(format)) {
    const int64_t begin = b * kBlockColumns, count = std::min(kBlockColumns, columns - begin);
    for (int64_t row = 0; row < kPanelRows; ++row) {
      const float* w = weights + row * columns + begin;
      float filled[kBlock] = {};
      if (row >= rows || count < kBlockColumns) {
        if (row < rows) std::copy_n(w, count, filled);
        w = filled;
      }
      put(format, quantize(w, format), row, panel);
    }
  }
}

void decode_panel_row(Format format, const uint8_t* panels, int64_t row, int64_t columns, float* values) {
  const uint8_t* bytes = panels + row / kPanelRows * panel_bytes(format, columns);
  const int64_t r = row % kPanelRows, place = r / 4 * 16 + r % 4 * 4;
  for (int64_t i = 0; i < columns; ++i) {
    if (i > 0 && i % kBlockColumns == 0) bytes += block_bytes(format);
    const int64_t column = i % kBlockColumns, low = column % 16;
    uint16_t scale;
    std::memcpy(&scale, bytes + block_value_bytes(format) + r * 2, 2);
    const int value = format == Format::kQ8 ? static_cast<int8_t>(bytes[column / 4 * 32 + place + column % 4])
                                            : (bytes[low / 4 * 32 + place + low % 4] >> (column < 16 ? 0 : 4) & 15) - 8;
    values[i] = static_cast<float>(value) * f16_to_f32(scale);
  }
}

}  // namespace qwasm
