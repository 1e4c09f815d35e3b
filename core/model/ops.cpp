// Cuts the kernels over the threads: products by output rows, attention by heads, the small steps by tokens.
#include "core/model/ops.h"

#include <algorithm>
#include <cstring>

#include "core/quant/panel.h"

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

Status Ops::prepare_panels(int64_t tokens, int64_t columns) {
  const int64_t blocks = blocks_of(columns);
  scratch_bytes_ = (panel_scratch_bytes(blocks) + 63) / 64 * 64;
  QW_TRY(quantized_values_.allocate(static_cast<uint64_t>(tokens * blocks * 64), "quantized activations"));
  QW_TRY(quantized_scales_.allocate(static_cast<uint64_t>(tokens * blocks), "quantized activations"));
  QW_TRY(quantized_sums_.allocate(static_cast<uint64_t>(tokens * blocks), "quantized activations"));
  return scratch_.allocate(static_cast<uint64_t>(threads() * scratch_bytes_), "expanded panels");
}

void Ops::quantize(const float* x, int64_t tokens, int64_t columns) {
  quantized_ = {quantized_values_.data(), quantized_scales_.data(), quantized_sums_.data(), blocks_of(columns)};
  each(tokens, [&](int64_t t) { kernels_.quantize(quantized_, t, x + t * columns, columns); });
}

void Ops::matmul(std::initializer_list<Product> products, const float* x, int64_t tokens) {
  const Matrix& first = products.begin()->w;
  if (is_panel(first.format)) quantize(x, tokens, first.columns);
  pool_.run([&](int ith, int nth) {
    for (const Product& product : products) {
      const Matrix& w = product.w;
      if (is_panel(w.format)) {
        const Range panels = part(panels_of(w.rows), ith, nth);
        const auto matmul = w.format == Format::kQ8 ? kernels_.matmul_q8 : kernels_.matmul_q4;
        matmul(product.y, w.rows, w.rows, static_cast<const uint8_t*>(w.data), quantized_, panels.begin, panels.end, tokens,
               scratch_.data() + ith * scratch_bytes_);
        continue;
      }
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
  const Format format = embed_tokens.format;
  const auto* table = static_cast<const uint8_t*>(embed_tokens.data);
  const int64_t n = embed_tokens.columns;
  for (int64_t t = 0; t < tokens; ++t) {
    if (is_panel(format)) {
      decode_panel_row(format, table, ids[t], n, x + t * n);
    } else {
      format_info(format).decode(table + ids[t] * bytes_of(format, n), n, x + t * n);
    }
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
