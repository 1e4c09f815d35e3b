// What is fast: the inner loops of the forward pass, on one thread, over raw pointers and row ranges. Each variant is a table of
// functions; all variants give the same bits, because every float sum has one fixed order (four lanes, then a tree) and products of
// whole numbers are exact.
#pragma once

#include <cstdint>

#include "core/quant/panel.h"

namespace qwasm {

// Activations of tokens as the kernels for panels (quant/panel.h) read them: int8 values in blocks of 32 with a scale each.
// Tokens stand in tiles of four, one or two that are left over in a tile of two, and one alone as it is; the last place of a tile may be free. A tile's
// tokens take turns, so that a loop over blocks reads on and on.
struct QuantizedTokens {
  static constexpr int64_t kBlockBytes = 128, kTile = 4;

  static constexpr int64_t kSums = 2;

  uint8_t* values;  // (tiles, blocks, 8, tile's tokens, 16): each group of four columns as often as a vector of weights wants it
  float* scales;    // (tiles, blocks, tile's tokens), for q8 and q4 times 2^112: a weight's float16 scale is read without its factor of 2^-112
  float* sums;      // (tiles, blocks, kSums, tile's tokens). q4: 8 · Σ values, which its 0 … 15 adds to a product with -8 … 7; q4m, q8m: what
                    // minimums are multiplied with, scale · Σ values of the block, or of each half
  int64_t tokens, blocks;
  Format format;  // of the panels that they are multiplied with

  // The tile that begins at `token`, a multiple of kTile or one that is left over.
  struct Tile {
    uint8_t* values;
    float* scales;
    float* sums;
  };
  Tile tile(int64_t token) const { return {values + token * blocks * kBlockBytes, scales + token * blocks, sums + token * blocks * kSums}; }
  static constexpr int64_t tiles(int64_t tokens) { return (tokens + kTile - 1) / kTile; }
  int64_t tile_size(int64_t token) const { return tokens == 1 ? 1 : tokens - token / kTile * kTile > 2 ? kTile : 2; }

  // Tokens for which the arrays must have room.
  static constexpr int64_t room(int64_t tokens) { return tokens == 1 ? 1 : (tokens + 1) / 2 * 2; }
};

struct Kernels {
  const char* name;

  // y[t · y_stride + r] = Σ_k w[r][k] · x[t][k] for rows r in [begin, end) and every token t.
  // w (rows, columns) as stored in `format`, x (tokens, columns), y (tokens, y_stride); all row-major.
  using MatMul = void (*)(float* y, int64_t y_stride, const void* w, const float* x, int64_t columns, int64_t begin, int64_t end, int64_t tokens);
  MatMul matmul[3];  // by Format, of floats

  struct Panel {
    // The tile of *out that begins at `token`, from the rows of x (its tokens, columns): per block scale = max|x| / 127, values to the nearest,
    // ties to even. A NaN or an infinity makes the scale NaN. By tiles, for tokens of one share cache lines.
    void (*quantize)(const QuantizedTokens& out, int64_t token, const float* x, int64_t columns);

    // y[t · y_stride + r] = Σ_b Σ_k w · x for the rows of panels [begin, end) and every token of x; y (tokens, y_stride), `rows` the
    // matrix's rows. Integer sums are exact; blocks are added in order. `scratch`: panel_scratch_bytes(x.blocks), aligned to 16.
    void (*matmul)(float* y, int64_t y_stride, int64_t rows, const uint8_t* panels, const QuantizedTokens& x, int64_t begin, int64_t end,
                   void* scratch);
  };
  Panel panels[kPanelFormats];
  const Panel& panel(Format format) const { return panels[panel_index(format)]; }

  // y = x / sqrt(mean(x²) + eps) · weight, over n values (RMSNorm). y may be x.
  void (*rms_norm)(float* y, const float* x, const float* weight, int64_t n, float eps);

  // Rotates the pairs (x[i], x[i + n/2]) by the angles whose cosines and sines are given (n/2 each): RoPE's half-split form.
  void (*rope)(float* x, const float* cos, const float* sin, int64_t n);

  // gate = silu(gate) · up over n values; silu(x) = x / (1 + exp(-x)).
  void (*silu_mul)(float* gate, const float* up, int64_t n);

  // x += y over n values.
  void (*add)(float* x, const float* y, int64_t n);

  // x *= factor over n values.
  void (*scale)(float* x, int64_t n, float factor);

  // In place: x = factor · exp(x - max x). Returns Σ exp(x - max x); n ≥ 1.
  float (*exponentials)(float* x, int64_t n, float factor);

  // Attention over the cache's blocks of keys and values (quant/cache_block.h), `rows` queries at once that share them.
  struct Attention {
    // Row `position` of a block from n values.
    void (*store)(uint8_t* block, int64_t position, const float* x, int64_t n);

    // A query of n values, times `scale`, as `scores` wants it: query_bytes(n).
    void (*prepare)(uint8_t* query, const float* q, int64_t n, float scale);

    // scores[r · stride + i] = query r · key i, for the block's first `count` keys, a multiple of four.
    void (*scores)(float* scores, int64_t stride, const uint8_t* queries, int64_t rows, const uint8_t* keys, int64_t count, int64_t n);

    // out[r][d] += Σ_i weights[r · stride + i] · value i[d] / value_factor, in the order of i, for the block's first `count` values, a
    // multiple of four; out (rows, n).
    void (*mix)(float* out, const float* weights, int64_t stride, int64_t rows, const uint8_t* values, int64_t count, int64_t n);

    // float16 values are read without their factor of 2^-112: the weights must carry it.
    float value_factor;
  };
  Attention attention[3];  // by CacheFormat
};

// A panel expanded with its numbers: what many tokens share.
constexpr int64_t panel_scratch_bytes(int64_t blocks) { return blocks * (256 * 2 + block_numbers(Format::kQ8M) * 8 * 4); }

// A prepared query: float32, or int16 in blocks of 32 with a scale each.
constexpr int64_t query_bytes(int64_t n) { return blocks_of(n) * (kBlockColumns * 4 + 4); }

const Kernels& scalar_kernels();
const Kernels& simd_kernels();

// Those of simd_kernels() with 4-bit panels by the relaxed dot products; two forms of them, of which engines like one or the other better.
// Natively plain instructions replace them exactly.
const Kernels& relaxed_kernels();
const Kernels& relaxed_wide_kernels();

// The variant that this build runs with weights in `formats`: SIMD in wasm, scalar in a native build (where SIMDe only serves the tests). A
// relaxed build times its two forms for 4-bit panels, the first time that they are asked for.
const Kernels& default_kernels(FormatSet formats);

}  // namespace qwasm
