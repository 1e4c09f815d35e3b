// Qwen3's forward pass (Qwen3 technical report, 2025; transformers' modeling_qwen3 is the reference).
#include "core/model/forward.h"

#include <algorithm>

namespace qwasm {

Status Forward::prepare() {
  const auto allocate = [](Buffer<float>& buffer, int64_t width) {
    return buffer.allocate(static_cast<uint64_t>(kMaxTokens * width), "activations");
  };
  for (Buffer<float>* buffer : {&hidden_, &normed_}) QW_TRY(allocate(*buffer, config_.hidden_size));
  for (Buffer<float>* buffer : {&q_, &mixed_}) QW_TRY(allocate(*buffer, config_.query_size()));
  for (Buffer<float>* buffer : {&k_, &v_}) QW_TRY(allocate(*buffer, config_.key_value_size()));
  for (Buffer<float>* buffer : {&gate_, &up_}) QW_TRY(allocate(*buffer, config_.intermediate_size));
  for (Buffer<float>* buffer : {&cos_, &sin_}) QW_TRY(allocate(*buffer, config_.head_dim / 2));
  if (!is_panel(weights_.embed_tokens.format)) return {};
  return ops_.prepare_panels(kMaxTokens, std::max({config_.hidden_size, config_.query_size(), config_.intermediate_size}));
}

Status Forward::reserve_scores(int64_t positions) {
  const auto count = static_cast<uint64_t>(ops_.threads() * positions);
  return scores_.size() < count ? scores_.allocate(count, "attention scores") : Status();
}

void Forward::layer(KvCache& cache, int64_t index, int64_t start, int64_t tokens) {
  const LayerWeights& w = weights_.layers[static_cast<size_t>(index)];
  const Config& c = config_;
  float *hidden = hidden_.data(), *normed = normed_.data(), *q = q_.data(), *k = k_.data(), *v = v_.data();

  ops_.rms_norm(normed, hidden, w.input_layernorm, tokens, c.hidden_size, c.rms_norm_eps);
  ops_.matmul({{q, w.q_proj}, {k, w.k_proj}, {v, w.v_proj}}, normed, tokens);
  ops_.rms_norm(q, q, w.q_norm, tokens * c.num_attention_heads, c.head_dim, c.rms_norm_eps);
  ops_.rms_norm(k, k, w.k_norm, tokens * c.num_key_value_heads, c.head_dim, c.rms_norm_eps);
  ops_.rope(q, cos_.data(), sin_.data(), tokens, c.num_attention_heads, c.head_dim);
  ops_.rope(k, cos_.data(), sin_.data(), tokens, c.num_key_value_heads, c.head_dim);
  ops_.store(cache, k, v, index, start, tokens, c);
  ops_.attention(mixed_.data(), q, cache, scores_.data(), index, start, tokens, c);
  ops_.matmul({{normed, w.o_proj}}, mixed_.data(), tokens);
  ops_.add(hidden, normed, tokens, c.hidden_size);

  ops_.rms_norm(normed, hidden, w.post_attention_layernorm, tokens, c.hidden_size, c.rms_norm_eps);
  ops_.matmul({{gate_.data(), w.gate_proj}, {up_.data(), w.up_proj}}, normed, tokens);
  ops_.silu_mul(gate_.data(), up_.data(), tokens, c.intermediate_size);
  ops_.matmul({{normed, w.down_proj}}, gate_.data(), tokens);
  ops_.add(hidden, normed, tokens, c.hidden_size);
}

Status Forward::run(KvCache& cache, std::span<const int32_t> ids, int64_t start, int64_t logits_rows, Buffer<float>* logits) {
  const auto tokens = static_cast<int64_t>(ids.size()), values = logits_rows * config_.vocab_size;
  QW_TRY(cache.reserve(start + tokens));
  QW_TRY(reserve_scores(cache.capacity()));
  if (static_cast<int64_t>(logits->size()) < values) QW_TRY(logits->allocate(static_cast<uint64_t>(values), "logits"));
  for (int64_t t = 0; t < tokens; ++t) {
    const int64_t row = t * config_.head_dim / 2;
    rope_.angles(start + t, cos_.data() + row, sin_.data() + row);
  }
  ops_.embed(hidden_.data(), weights_.embed_tokens, ids.data(), tokens);
  for (int64_t index = 0; index < config_.num_hidden_layers; ++index) layer(cache, index, start, tokens);
  if (logits_rows == 0) return {};

  const float* last = hidden_.data() + (tokens - logits_rows) * config_.hidden_size;
  ops_.rms_norm(normed_.data(), last, weights_.norm, logits_rows, config_.hidden_size, config_.rms_norm_eps);
  ops_.matmul({{logits->data(), weights_.lm_head}}, normed_.data(), logits_rows);
  const int64_t bad = format_info(Format::kF32).find_not_finite(logits->data(), values);
  if (bad < 0) return {};
  return error(Code::kNotFinite, "the logits at position %lld are not finite (token %lld); the weights or their arithmetic overflow",
               static_cast<long long>(start + tokens - logits_rows + bad / config_.vocab_size), static_cast<long long>(bad % config_.vocab_size));
}

}  // namespace qwasm
