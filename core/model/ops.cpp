// Cuts the kernels over the threads: products by output rows, attention by heads, the small steps by tokens.
#include "core/model/ops.h"

#include <algorithm>
#include <cstring>

namespace qwasm {

template <typename F>
void Ops::each(int64_t count, const F& f) {
  if (count < pool_.threads()) {
    for (int64_t i = 0; i < count; ++i) f(i);
    return;
  }
  pool_.run([&](int ith, int nth) {
    const Range range = part(count, ith, nth);
    for (int64_t i = range.begin; i < range.end; ++i) f(i);
  });
}

void Ops::matmul(std::initializer_list<Product> products, const float* x, int64_t tokens) {
  pool_.run([&](int ith, int nth) {
    for (const Product& product : products) {
      const Matrix& w = product.w;
      const Range rows = part(w.rows, ith, nth, /*grain=*/4);
      kernels_.matmul[static_cast<int>(w.format)](product.y, w.rows, w.data, x, w.columns, rows.begin, rows.end, tokens);
    }
  });
}

void Ops::add(float* x, const float* y, int64_t tokens, int64_t n) {
  each(tokens, [&](int64_t t) { kernels_.add(x + t * n, y + t * n, n); });
}

void Ops::rms_norm(float* y, const float* x, const float* weight, int64_t rows, int64_t n, double eps) {
  const auto norm = [&](int64_t i) { kernels_.rms_norm(y + i * n, x + i * n, weight, n, static_cast<float>(eps)); };
  if (rows * n < 16384) {  // the heads of one token: not worth a barrier
    for (int64_t i = 0; i < rows; ++i) norm(i);
  } else {
    each(rows, norm);
  }
}

void Ops::silu_mul(float* gate, const float* up, int64_t tokens, int64_t n) {
  each(tokens, [&](int64_t t) { kernels_.silu_mul(gate + t * n, up + t * n, n); });
}

void Ops::embed(float* x, const Matrix& embed_tokens, const int32_t* ids, int64_t tokens) {
  const FormatInfo& format = format_info(embed_tokens.format);
  const int64_t n = embed_tokens.columns, row_bytes = bytes_of(embed_tokens.format, n);
  for (int64_t t = 0; t < tokens; ++t) {
    format.decode(static_cast<const uint8_t*>(embed_tokens.data) + ids[t] * row_bytes, n, x + t * n);
  }
}

void Ops::rope(float* x, const float* cos, const float* sin, int64_t tokens, int64_t heads, int64_t head_dim) {
  each(tokens, [&](int64_t t) {
    for (int64_t h = 0; h < heads; ++h) {
      kernels_.rope(x + (t * heads + h) * head_dim, cos + t * head_dim / 2, sin + t * head_dim / 2, head_dim);
    }
  });
}

void Ops::store(KvCache& cache, const float* k, const float* v, int64_t layer, int64_t start, int64_t tokens, const Config& config) {
  const int64_t heads = config.num_key_value_heads, n = config.head_dim;
  for (int64_t t = 0; t < tokens; ++t) {
    for (int64_t h = 0; h < heads; ++h) {
      std::memcpy(cache.key(layer, h, start + t), k + (t * heads + h) * n, static_cast<size_t>(n) * sizeof(float));
      std::memcpy(cache.value(layer, h, start + t), v + (t * heads + h) * n, static_cast<size_t>(n) * sizeof(float));
    }
  }
}

void Ops::attention(float* out, const float* q, KvCache& cache, float* scratch, int64_t layer, int64_t start, int64_t tokens,
                    const Config& config) {
  const int64_t heads = config.num_attention_heads, group = heads / config.num_key_value_heads, n = config.head_dim;
  const float scale = 1.0f / __builtin_sqrtf(static_cast<float>(n));
  pool_.run([&](int ith, int nth) {
    float* scores = scratch + ith * (start + tokens);
    const Range items = part(tokens * heads, ith, nth);
    for (int64_t item = items.begin; item < items.end; ++item) {
      const int64_t t = item / heads, head = item % heads, kv_head = head / group, seen = start + t + 1;
      for (int64_t at = 0; at < seen; at += KvCache::kBlock) {
        kernels_.scores(scores + at, q + item * n, cache.key(layer, kv_head, at), std::min(KvCache::kBlock, seen - at), n, scale);
      }
      kernels_.softmax(scores, seen);
      float* mixed = out + item * n;
      std::fill(mixed, mixed + n, 0.0f);
      for (int64_t at = 0; at < seen; at += KvCache::kBlock) {
        kernels_.mix(mixed, scores + at, cache.value(layer, kv_head, at), std::min(KvCache::kBlock, seen - at), n);
      }
    }
  });
}

}  // namespace qwasm
