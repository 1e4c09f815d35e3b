// The forward pass of Qwen3 and its neighbours (transformers' modeling_qwen3, _qwen2, _llama, _mistral and _smollm3 are the reference).
#include "core/model/forward.h"

#include <algorithm>

namespace qwasm {

Status Forward::prepare() {
  const auto allocate = [](Buffer<float>& buffer, int64_t width) {
    return buffer.allocate(static_cast<uint64_t>(kMaxTokens * width), "activations");
  };
  for (Buffer<float>* buffer : {&hidden_, &normed_}) QW_TRY(allocate(*buffer, config_.hidden_size));
  for (Buffer<float>* buffer : {&queries_, &mixed_}) QW_TRY(allocate(*buffer, config_.query_size()));
  for (Buffer<float>* buffer : {&cos_, &sin_}) QW_TRY(allocate(*buffer, config_.head_dim / 2));
  QW_TRY(allocate(gated_, config_.intermediate_size));
  return ops_.prepare(kMaxTokens, weights_.formats);
}

void Forward::layer(const Ops::Place& place) {
  const LayerWeights& w = weights_.layers[static_cast<size_t>(place.layer)];
  const int64_t tokens = place.tokens();
  float *hidden = hidden_.data(), *normed = normed_.data(), *queries = queries_.data(), *mixed = mixed_.data(), *gated = gated_.data();

  ops_.rms_norm(normed, hidden, w.input_layernorm, tokens, config_.hidden_size);
  ops_.project_heads(queries, w, normed, place);
  ops_.attention(mixed, queries, place);
  ops_.add_product(hidden, w.o_proj, mixed, tokens);

  ops_.rms_norm(normed, hidden, w.post_attention_layernorm, tokens, config_.hidden_size);
  ops_.gated_product(gated, w.gate_proj, w.up_proj, normed, tokens);
  ops_.add_product(hidden, w.down_proj, gated, tokens);
}

Status Forward::run(std::span<const Row> rows, Buffer<float>* logits) {
  const auto tokens = static_cast<int64_t>(rows.size()), wanted = static_cast<int64_t>(std::ranges::count_if(rows, &Row::is_wanted));
  const int64_t values = logits ? wanted * config_.vocab_size : 0, width = config_.hidden_size;
  if (values > 0 && !weights_.lm_head.data) {
    return error(Code::kUnsupported, "the weights have no lm_head.weight, so the model gives hidden states, for embeddings, and no logits");
  }
  int64_t longest = 0;
  tiles_.clear();
  for (int64_t t = 0; t < tokens; ++t) {
    const Row& row = rows[static_cast<size_t>(t)];
    longest = std::max(longest, row.cache->capacity());
    rope_.angles(row.position, cos_.data() + t * config_.head_dim / 2, sin_.data() + t * config_.head_dim / 2);
    const bool follows = t > 0 && row.cache == rows[static_cast<size_t>(t - 1)].cache && t - tiles_.back().begin < Ops::kTileTokens;
    if (!follows) tiles_.push_back({t, t});
    tiles_.back().end = t + 1;
  }
  QW_TRY(ops_.reserve(longest));
  if (values > 0 && static_cast<int64_t>(logits->size()) < values) QW_TRY(logits->allocate(static_cast<uint64_t>(values), "logits"));
  ops_.embed(hidden_.data(), weights_.embed_tokens, rows);
  for (int64_t index = 0; index < config_.num_hidden_layers; ++index) {
    layer({index, rows, tiles_, config_.has_rope(index) ? cos_.data() : nullptr, sin_.data()});
  }
  if (wanted == 0) return {};

  float* to = hidden_.data();
  for (int64_t t = 0; t < tokens; ++t) {
    if (!rows[static_cast<size_t>(t)].is_wanted) continue;
    if (to != hidden_.data() + t * width) std::copy_n(hidden_.data() + t * width, width, to);
    to += width;
  }
  ops_.rms_norm(normed_.data(), hidden_.data(), weights_.norm, wanted, width);
  if (logits) ops_.product(logits->data(), weights_.lm_head, normed_.data(), wanted);
  return {};
}

Status Forward::check_logits(const float* logits, int64_t position) const {
  const int64_t bad = format_info(Format::kF32).find_not_finite(logits, config_.vocab_size);
  if (bad < 0) return {};
  return error(Code::kNotFinite, "the logits at position %lld are not finite (token %lld); the weights or their arithmetic overflow",
               static_cast<long long>(position), static_cast<long long>(bad));
}

Status Forward::check_hidden(const float* hidden, int64_t position) const {
  const int64_t bad = format_info(Format::kF32).find_not_finite(hidden, config_.hidden_size);
  if (bad < 0) return {};
  return error(Code::kNotFinite, "the final hidden state at position %lld is not finite (value %lld); the weights or their arithmetic overflow",
               static_cast<long long>(position), static_cast<long long>(bad));
}

}  // namespace qwasm
