// Qwen3's forward pass (Qwen3 technical report, 2025; transformers' modeling_qwen3 is the reference).
#include "core/model/forward.h"

namespace qwasm {

Status Forward::prepare() {
  const auto allocate = [](Buffer<float>& buffer, int64_t width) {
    return buffer.allocate(static_cast<uint64_t>(kMaxTokens * width), "activations");
  };
  for (Buffer<float>* buffer : {&hidden_, &normed_}) QW_TRY(allocate(*buffer, config_.hidden_size));
  for (Buffer<float>* buffer : {&queries_, &mixed_}) QW_TRY(allocate(*buffer, config_.query_size()));
  for (Buffer<float>* buffer : {&cos_, &sin_}) QW_TRY(allocate(*buffer, config_.head_dim / 2));
  QW_TRY(allocate(gated_, config_.intermediate_size));
  return ops_.prepare(kMaxTokens, weights_.embed_tokens.format);
}

void Forward::layer(KvCache& cache, const Ops::Place& place) {
  const LayerWeights& w = weights_.layers[static_cast<size_t>(place.layer)];
  float *hidden = hidden_.data(), *normed = normed_.data(), *queries = queries_.data(), *mixed = mixed_.data(), *gated = gated_.data();

  ops_.rms_norm(normed, hidden, w.input_layernorm, place.tokens, config_.hidden_size);
  ops_.project_heads(queries, cache, w, normed, place);
  ops_.attention(mixed, queries, cache, place);
  ops_.add_product(hidden, w.o_proj, mixed, place.tokens);

  ops_.rms_norm(normed, hidden, w.post_attention_layernorm, place.tokens, config_.hidden_size);
  ops_.gated_product(gated, w.gate_proj, w.up_proj, normed, place.tokens);
  ops_.add_product(hidden, w.down_proj, gated, place.tokens);
}

Status Forward::run(KvCache& cache, std::span<const int32_t> ids, int64_t start, int64_t logits_rows, Buffer<float>* logits) {
  const auto tokens = static_cast<int64_t>(ids.size()), values = logits_rows * config_.vocab_size;
  QW_TRY(cache.reserve(start + tokens));
  QW_TRY(ops_.reserve(cache.capacity()));
  if (static_cast<int64_t>(logits->size()) < values) QW_TRY(logits->allocate(static_cast<uint64_t>(values), "logits"));
  for (int64_t t = 0; t < tokens; ++t) {
    const int64_t row = t * config_.head_dim / 2;
    rope_.angles(start + t, cos_.data() + row, sin_.data() + row);
  }
  ops_.embed(hidden_.data(), weights_.embed_tokens, ids.data(), tokens);
  for (int64_t index = 0; index < config_.num_hidden_layers; ++index) layer(cache, {index, start, tokens, cos_.data(), sin_.data()});
  if (logits_rows == 0) return {};

  const float* last = hidden_.data() + (tokens - logits_rows) * config_.hidden_size;
  ops_.rms_norm(normed_.data(), last, weights_.norm, logits_rows, config_.hidden_size);
  ops_.product(logits->data(), weights_.lm_head, normed_.data(), logits_rows);
  const int64_t bad = format_info(Format::kF32).find_not_finite(logits->data(), values);
  if (bad < 0) return {};
  return error(Code::kNotFinite, "the logits at position %lld are not finite (token %lld); the weights or their arithmetic overflow",
               static_cast<long long>(start + tokens - logits_rows + bad / config_.vocab_size), static_cast<long long>(bad % config_.vocab_size));
}

}  // namespace qwasm
