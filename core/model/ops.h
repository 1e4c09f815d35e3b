// The steps of the forward pass: kernels cut over the threads. Here and nowhere else threads meet arithmetic; every output value is
// computed by one thread in one order, so the number of threads never changes a bit.
#pragma once

#include <cstdint>
#include <initializer_list>

#include "core/base/buffer.h"
#include "core/base/thread_pool.h"
#include "core/kernels/kernels.h"
#include "core/model/kv_cache.h"
#include "core/model/rope.h"
#include "core/model/weights.h"

namespace qwasm {

class Ops {
 public:
  Ops(const Kernels& kernels, ThreadPool& pool) : kernels_(kernels), pool_(pool) {}

  // Memory for activations as panels want them: up to `tokens` tokens of up to `columns` values.
  Status prepare_panels(int64_t tokens, int64_t columns);

  struct Product {
    float* y;         // (tokens, w.rows)
    const Matrix& w;
  };
  // y = x · wᵀ for each product; x (tokens, columns). Products of one call share x, its quantization and one pass over the threads.
  void matmul(std::initializer_list<Product> products, const float* x, int64_t tokens);

  // x (tokens, n) += y (tokens, n)
  void add(float* x, const float* y, int64_t tokens, int64_t n);

  // y = RMSNorm(x) over each of `rows` rows of n values.
  void rms_norm(float* y, const float* x, const float* weight, int64_t rows, int64_t n, double eps);

  // gate = silu(gate) · up, both (tokens, n)
  void silu_mul(float* gate, const float* up, int64_t tokens, int64_t n);

  // Rows of the embedding table as float32: x (tokens, columns).
  void embed(float* x, const Matrix& embed_tokens, const int32_t* ids, int64_t tokens);

  // Rotates q (tokens, heads · head_dim) in place; cos and sin (tokens, head_dim / 2).
  void rope(float* x, const float* cos, const float* sin, int64_t tokens, int64_t heads, int64_t head_dim);

  // Copies k and v (tokens, num_key_value_heads · head_dim) to the cache at positions start, start + 1, …
  void store(KvCache& cache, const float* k, const float* v, int64_t layer, int64_t start, int64_t tokens, const Config& config);

  // Causal grouped-query attention: out and q (tokens, num_attention_heads · head_dim); token t sees positions 0 … start + t.
  // `scratch`: start + tokens floats for each thread.
  void attention(float* out, const float* q, KvCache& cache, float* scratch, int64_t layer, int64_t start, int64_t tokens, const Config& config);

  int threads() const { return pool_.threads(); }

 private:
  // Runs f(i) for i in [0, count). One item, or little work, stays on the calling thread: waking the others costs more.
  template <typename F>
  void each(int64_t count, const F& f);

  // Fills quantized_ from x (tokens, columns).
  void quantize(const float* x, int64_t tokens, int64_t columns);

  const Kernels& kernels_;
  ThreadPool& pool_;
  QuantizedTokens quantized_{};  // in the three buffers below
  Buffer<int16_t> quantized_values_;
  Buffer<float> quantized_scales_;
  Buffer<int32_t> quantized_sums_;
  Buffer<uint8_t> scratch_;  // (threads, scratch_bytes_)
  int64_t scratch_bytes_ = 0;
};

}  // namespace qwasm
