// What is fast: the inner loops of the forward pass, on one thread, over raw pointers and row ranges. Each variant is a table of
// functions; all variants give the same bits, because every float sum has one fixed order (four lanes, then a tree).
#pragma once

#include <cstdint>

#include "core/quant/format.h"

namespace qwasm {

struct Kernels {
  const char* name;

  // y[t · y_stride + r] = Σ_k w[r][k] · x[t][k] for rows r in [begin, end) and every token t.
  // w (rows, columns) as stored in `format`, x (tokens, columns), y (tokens, y_stride); all row-major.
  using MatMul = void (*)(float* y, int64_t y_stride, const void* w, const float* x, int64_t columns, int64_t begin, int64_t end, int64_t tokens);
  MatMul matmul[3];  // by Format

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

const Kernels& scalar_kernels();
const Kernels& simd_kernels();

// The variant that this build runs: SIMD in wasm, scalar in a native build (where SIMDe only serves the tests).
const Kernels& default_kernels();

}  // namespace qwasm
