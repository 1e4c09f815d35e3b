// What is fast: the inner loops of the forward pass, on one thread, over raw pointers and row ranges. Each variant is a table of
// functions; all variants give the same bits, because every float sum has one fixed order (four lanes, then a tree).
#pragma once

#include <cstdint>

#include "core/quant/panel.h"

namespace qwasm {

// Activations of tokens as the kernels for panels (quant/panel.h) read them: int8 values in blocks of 32 with a scale each.
struct QuantizedTokens {
  int16_t* values;  // (tokens, blocks, 64): each group of four columns stands twice, so that one load serves two rows
  float* scales;    // (tokens, blocks), times 2^112: a weight's float16 scale is read without its factor of 2^-112
  int32_t* sums;    // (tokens, blocks): 8 · Σ values, which q4's 0 … 15 adds to a product with -8 … 7
  int64_t blocks;   // of a token
};

struct Kernels {
  const char* name;

  // y[t · y_stride + r] = Σ_k w[r][k] · x[t][k] for rows r in [begin, end) and every token t.
  // w (rows, columns) as stored in `format`, x (tokens, columns), y (tokens, y_stride); all row-major.
  using MatMul = void (*)(float* y, int64_t y_stride, const void* w, const float* x, int64_t columns, int64_t begin, int64_t end, int64_t tokens);
  MatMul matmul[3];  // by Format, of rows

  // Row `token` of *out from x (columns): per block scale = max|x| / 127, values to the nearest, ties to even.
  void (*quantize)(const QuantizedTokens& out, int64_t token, const float* x, int64_t columns);

  // y[t · y_stride + r] = Σ_b Σ_k w · x for the rows of panels [begin, end) and every token; y (tokens, y_stride), `rows` the matrix's rows.
  // Integer sums are exact; blocks are added in order. `scratch`: panel_scratch_bytes(x.blocks), aligned to 16.
  using PanelMatMul = void (*)(float* y, int64_t y_stride, int64_t rows, const uint8_t* panels, const QuantizedTokens& x, int64_t begin,
                               int64_t end, int64_t tokens, void* scratch);
  PanelMatMul matmul_q8, matmul_q4;

  // y = x / sqrt(mean(x²) + eps) · weight, over n values (RMSNorm). y may be x.
  void (*rms_norm)(float* y, const float* x, const float* weight, int64_t n, float eps);

  // Rotates the pairs (x[i], x[i + n/2]) by the angles whose cosines and sines are given (n/2 each): RoPE's half-split form.
  void (*rope)(float* x, const float* cos, const float* sin, int64_t n);

  // gate = silu(gate) · up over n values; silu(x) = x / (1 + exp(-x)).
  void (*silu_mul)(float* gate, const float* up, int64_t n);

  // x += y over n values.
  void (*add)(float* x, const float* y, int64_t n);

  // scores[i] = scale · (q · keys[i]) for `count` keys of n values each.
  void (*scores)(float* scores, const float* q, const float* keys, int64_t count, int64_t n, float scale);

  // In place: exp(x - max) / Σ exp(x - max).
  void (*softmax)(float* x, int64_t n);

  // out[d] += Σ_i weights[i] · values[i][d], in the order of i, for `count` values of n each.
  void (*mix)(float* out, const float* weights, const float* values, int64_t count, int64_t n);
};

// A panel expanded to int16 with its scales: what many tokens share.
constexpr int64_t panel_scratch_bytes(int64_t blocks) { return blocks * (256 * 2 + 8 * 4); }

const Kernels& scalar_kernels();
const Kernels& simd_kernels();

// The variant that this build runs: SIMD in wasm, scalar in a native build (where SIMDe only serves the tests).
const Kernels& default_kernels();

}  // namespace qwasm
