// Cuts the kernels over the threads: products by output rows, attention by heads, norms by tokens.
#include "core/model/ops.h"

#include <algorithm>
#include <numeric>

#include "core/quant/panel.h"

namespace qwasm {

namespace {

int64_t tile_queries(const Config& config) { return Ops::kTileTokens * config.num_attention_heads / config.num_key_value_heads; }

// Rows of a product that a thread takes at once: few, but in Qwen3-0.6B worth 3 µs.
constexpr int64_t kRowsForOneToken = 8 * kPanelRows, kRowsForMany = 2 * kPanelRows;

// Rows of a block type that are decoded before they are multiplied: the kernels for float32 like four.
constexpr int64_t kDecodedRows = 4;

}  // namespace

Status Ops::Quantized::allocate(int64_t count, int64_t blocks) {
  const auto room = static_cast<uint64_t>(QuantizedTokens::room(count) * blocks);
  QW_TRY(values.allocate(room * QuantizedTokens::kBlockBytes, "activations"));
  QW_TRY(scales.allocate(room, "activations"));
  QW_TRY(sums.allocate(room * QuantizedTokens::kSums, "activations"));
  // Free places of a tile are read, though what comes of them is not.
  std::fill_n(values.data(), values.size(), 0);
  std::fill_n(scales.data(), scales.size(), 0.0f);
  std::fill_n(sums.data(), sums.size(), 0.0f);
  return {};
}

Status Ops::prepare(int64_t tokens, FormatSet formats) {
  const auto allocate = [&](auto& buffer, int64_t count) { return buffer.allocate(static_cast<uint64_t>(count), "activations"); };
  QW_TRY(allocate(kv_, tokens * 2 * config_.key_value_size()));
  QW_TRY(allocate(product_, tokens * config_.hidden_size));
  QW_TRY(allocate(up_, tokens * config_.intermediate_size));
  QW_TRY(allocate(queries_, pool_.threads() * tile_queries(config_) * query_bytes(config_.head_dim)));
  QW_TRY(allocate(attention_, pool_.threads() * tile_queries(config_) * (config_.head_dim + 1)));
  const int64_t columns = std::max({config_.hidden_size, config_.query_size(), config_.intermediate_size}), blocks = blocks_of(columns);
  for (int i = 0; i < kPanelFormats; ++i) {
    if (formats.has(static_cast<Format>(kFirstPanel + i))) QW_TRY(quantized_[i].allocate(tokens, blocks));
  }
  const int64_t decoded = kDecodedRows * columns * static_cast<int64_t>(sizeof(float));
  scratch_bytes_ = std::max(formats.has_panels() ? panel_scratch_bytes(blocks) : 0, formats.has_blocks() ? decoded : 0);
  scratch_bytes_ = (scratch_bytes_ + 63) / 64 * 64;
  return allocate(scratch_, pool_.threads() * scratch_bytes_);
}

Status Ops::reserve(int64_t positions) {
  if (positions <= positions_) return {};
  positions_ = 0;  // an allocation that fails leaves nothing
  QW_TRY(scores_.allocate(static_cast<uint64_t>(pool_.threads() * tile_queries(config_) * positions), "attention scores", "a smaller contextLength takes less"));
  positions_ = positions;
  return {};
}

void Ops::rms_norm(float* y, const float* x, const float* weight, int64_t tokens, int64_t n) {
  const auto eps = static_cast<float>(config_.rms_norm_eps);
  pool_.run(tokens, [&](Range range, int) {
    for (int64_t t = range.begin; t < range.end; ++t) kernels_.rms_norm(y + t * n, x + t * n, weight, n, eps);
  });
}

void Ops::prepare_input(std::initializer_list<const Matrix*> matrices, const float* x, int64_t tokens) {
  FormatSet prepared;
  for (const Matrix* w : matrices) {
    if (!is_panel(w->format) || prepared.has(w->format)) continue;
    prepared.add(w->format);
    Quantized& quantized = quantized_[panel_index(w->format)];
    quantized.tokens = {quantized.values.data(), quantized.scales.data(), quantized.sums.data(), tokens, blocks_of(w->columns), w->format};
    pool_.run(QuantizedTokens::tiles(tokens), [&](Range tiles, int) {
      for (int64_t tile = tiles.begin; tile < tiles.end; ++tile) {
        const int64_t t = tile * QuantizedTokens::kTile;
        kernels_.panel(w->format).quantize(quantized.tokens, t, x + t * w->columns, w->columns);
      }
    });
  }
}

template <typename Work>
void Ops::run_rows(int64_t rows, int64_t tokens, const Work& work) {
  const int64_t grain = tokens == 1 ? kRowsForOneToken : kRowsForMany;
  pool_.run((rows + grain - 1) / grain, [&](Range range, int ith) { work(Range{range.begin * grain, std::min(range.end * grain, rows)}, ith); });
}

void Ops::multiply(float* y, const Matrix& w, const float* x, Range rows, int64_t tokens, int ith) {
  if (is_float(w.format)) {
    return kernels_.matmul[static_cast<int>(w.format)](y, w.rows, w.data, x, w.columns, rows.begin, rows.end, tokens);
  }
  if (!is_panel(w.format)) return multiply_blocks(y, w, x, rows, tokens, ith);
  kernels_.panel(w.format).matmul(y, w.rows, w.rows, static_cast<const uint8_t*>(w.data), quantized_[panel_index(w.format)].tokens,
                                  rows.begin / kPanelRows, panels_of(rows.end), scratch_.data() + ith * scratch_bytes_);
}

void Ops::multiply_blocks(float* y, const Matrix& w, const float* x, Range rows, int64_t tokens, int ith) {
  auto* decoded = reinterpret_cast<float*>(scratch_.data() + ith * scratch_bytes_);
  const auto* blocks = static_cast<const uint8_t*>(w.data);
  for (int64_t r = rows.begin; r < rows.end; r += kDecodedRows) {
    const int64_t count = std::min(kDecodedRows, rows.end - r);
    format_info(w.format).decode(blocks + bytes_of(w.format, r * w.columns), count * w.columns, decoded);
    kernels_.matmul[static_cast<int>(Format::kF32)](y + r, w.rows, decoded, x, w.columns, 0, count, tokens);
  }
}

void Ops::product(float* y, const Matrix& w, const float* x, int64_t tokens) {
  prepare_input({&w}, x, tokens);
  run_rows(w.rows, tokens, [&](Range rows, int ith) { multiply(y, w, x, rows, tokens, ith); });
}

void Ops::add_product(float* y, const Matrix& w, const float* x, int64_t tokens) {
  prepare_input({&w}, x, tokens);
  run_rows(w.rows, tokens, [&](Range rows, int ith) {
    multiply(product_.data(), w, x, rows, tokens, ith);
    for (int64_t at = rows.begin; at < tokens * w.rows; at += w.rows) kernels_.add(y + at, product_.data() + at, rows.end - rows.begin);
  });
}

void Ops::gated_product(float* y, const Matrix& gate, const Matrix& up, const float* x, int64_t tokens) {
  prepare_input({&gate, &up}, x, tokens);
  run_rows(gate.rows, tokens, [&](Range rows, int ith) {
    multiply(y, gate, x, rows, tokens, ith);
    multiply(up_.data(), up, x, rows, tokens, ith);
    for (int64_t at = rows.begin; at < tokens * gate.rows; at += gate.rows) kernels_.silu_mul(y + at, up_.data() + at, rows.end - rows.begin);
  });
}

void Ops::finish_head(float* head, const float* norm, const Place& place, int64_t token) {
  const int64_t n = config_.head_dim;
  if (norm) kernels_.rms_norm(head, head, norm, n, static_cast<float>(config_.rms_norm_eps));
  if (place.cos) kernels_.rope(head, place.cos + token * n / 2, place.sin + token * n / 2, n);
}

void Ops::project_heads(float* q, const LayerWeights& w, const float* x, const Place& place) {
  const int64_t n = config_.head_dim, query_heads = config_.num_attention_heads, kv_heads = config_.num_key_value_heads;
  const auto store = [&](uint8_t* block, const Row& row, const float* head) {
    kernels_.attention[static_cast<int>(row.cache->format())].store(block, row.position % KvCache::kBlock, head, n);
  };
  const int64_t tokens = place.tokens();
  float *k = kv_.data(), *v = k + tokens * config_.key_value_size();
  prepare_input({&w.q_proj, &w.k_proj, &w.v_proj}, x, tokens);

  // An item is as many heads as begin and end at panels; queries first, then keys, then values.
  const int64_t heads_per_item = kPanelRows / std::gcd(kPanelRows, n);
  const auto items_of = [&](int64_t heads) { return (heads + heads_per_item - 1) / heads_per_item; };
  const auto project = [&](float* y, const Matrix& matrix, const float* bias, int64_t heads, int64_t item, int ith, const auto& finish) {
    const Range range = {item * heads_per_item, std::min((item + 1) * heads_per_item, heads)};
    multiply(y, matrix, x, {range.begin * n, range.end * n}, tokens, ith);
    for (int64_t t = 0; t < tokens; ++t) {
      if (bias) kernels_.add(y + (t * heads + range.begin) * n, bias + range.begin * n, (range.end - range.begin) * n);
      for (int64_t h = range.begin; h < range.end; ++h) finish(y + (t * heads + h) * n, h, t);
    }
  };
  const int64_t first_key = items_of(query_heads), first_value = first_key + items_of(kv_heads);
  pool_.run(first_value + items_of(kv_heads), [&](Range items, int ith) {
    for (int64_t item = items.begin; item < items.end; ++item) {
      if (item < first_key) {
        project(q, w.q_proj, w.q_bias, query_heads, item, ith, [&](float* head, int64_t, int64_t t) { finish_head(head, w.q_norm, place, t); });
      } else if (item < first_value) {
        project(k, w.k_proj, w.k_bias, kv_heads, item - first_key, ith, [&](float* head, int64_t h, int64_t t) {
          const Row& row = place.rows[static_cast<size_t>(t)];
          finish_head(head, w.k_norm, place, t);
          store(row.cache->keys(place.layer, h, row.position), row, head);
        });
      } else {
        project(v, w.v_proj, w.v_bias, kv_heads, item - first_value, ith, [&](float* head, int64_t h, int64_t t) {
          const Row& row = place.rows[static_cast<size_t>(t)];
          store(row.cache->values(place.layer, h, row.position), row, head);
        });
      }
    }
  });
}

void Ops::attention(float* out, const float* q, const Place& place) {
  const auto tiles = static_cast<int64_t>(place.tiles.size());
  pool_.run(config_.num_key_value_heads * tiles, [&](Range items, int ith) {
    for (int64_t item = items.begin; item < items.end; ++item) attend(out, q, place, item / tiles, place.tiles[static_cast<size_t>(item % tiles)], ith);
  });
}

// The queries of a few tokens in the heads that share keys: scores, softmax and mix over the cache's blocks. The softmax's division comes last.
void Ops::attend(float* out, const float* q, const Place& place, int64_t kv_head, Range tokens, int ith) {
  KvCache& cache = *place.rows[static_cast<size_t>(tokens.begin)].cache;
  const Kernels::Attention& kernels = kernels_.attention[static_cast<int>(cache.format())];
  const auto seen_by = [&](int64_t t) { return place.rows[static_cast<size_t>(t)].position + 1; };
  const int64_t n = config_.head_dim, heads = config_.num_attention_heads, group = heads / config_.num_key_value_heads;
  const int64_t rows = (tokens.end - tokens.begin) * group, seen = (seen_by(tokens.end - 1) + 3) / 4 * 4;  // kernels take four at a time
  const AttentionScratch scratch = attention_scratch(ith);
  const auto each_block = [&](const auto& f) {
    for (int64_t at = 0; at < seen; at += KvCache::kBlock) f(at, std::min(KvCache::kBlock, seen - at));
  };
  const auto each_row = [&](const auto& f) {
    for (int64_t row = 0; row < rows; ++row) f(row, tokens.begin + row / group, kv_head * group + row % group);
  };

  const float scale = 1.0f / __builtin_sqrtf(static_cast<float>(n));
  each_row([&](int64_t row, int64_t t, int64_t head) { kernels.prepare(scratch.queries + row * query_bytes(n), q + (t * heads + head) * n, n, scale); });
  each_block([&](int64_t at, int64_t count) {
    kernels.scores(scratch.scores + at, positions_, scratch.queries, rows, cache.keys(place.layer, kv_head, at), count, n);
  });
  each_row([&](int64_t row, int64_t t, int64_t) {
    float* scores = scratch.scores + row * positions_;
    const int64_t own = seen_by(t);  // what stands behind belongs to later tokens, or to none, and must count nothing
    scratch.totals[row] = kernels_.exponentials(scores, own, kernels.value_factor);
    std::fill(scores + own, scores + seen, 0.0f);
  });
  std::fill(scratch.mixed, scratch.mixed + rows * n, 0.0f);
  each_block([&](int64_t at, int64_t count) {
    kernels.mix(scratch.mixed, scratch.scores + at, positions_, rows, cache.values(place.layer, kv_head, at), count, n);
  });
  each_row([&](int64_t row, int64_t t, int64_t head) {
    float* to = out + (t * heads + head) * n;
    std::copy_n(scratch.mixed + row * n, n, to);
    kernels_.scale(to, n, 1.0f / scratch.totals[row]);
  });
}

Ops::AttentionScratch Ops::attention_scratch(int ith) {
  const int64_t rows = tile_queries(config_);
  float* mixed = attention_.data() + ith * rows * (config_.head_dim + 1);
  return {queries_.data() + ith * rows * query_bytes(config_.head_dim), scores_.data() + ith * rows * positions_, mixed, mixed + rows * config_.head_dim};
}

void Ops::embed(float* x, const Matrix& embed_tokens, std::span<const Row> rows) {
  const Format format = embed_tokens.format;
  const auto* table = static_cast<const uint8_t*>(embed_tokens.data);
  const int64_t n = embed_tokens.columns;
  for (const Row& row : rows) {
    if (is_panel(format)) {
      decode_panel_row(format, table, row.id, n, x);
    } else {
      format_info(format).decode(table + row.id * bytes_of(format, n), n, x);
    }
    x += n;
  }
}

}  // namespace qwasm
