// The steps of the forward pass: kernels cut over the threads. Here and nowhere else threads meet arithmetic; every output value is
// computed by one thread in one order, so neither the number of threads nor who takes which part changes a bit.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>

#include "core/base/buffer.h"
#include "core/base/thread_pool.h"
#include "core/kernels/kernels.h"
#include "core/model/kv_cache.h"
#include "core/model/weights.h"

namespace qwasm {

// A token of a run. Rows of one sequence stand together, at positions that follow each other.
struct Row {
  KvCache* cache;  // of its sequence; holds the positions before it, but for those that run with it
  int32_t id;
  bool is_wanted;  // its final hidden state, and its logits where the run gives some
  int64_t position;
};

class Ops {
 public:
  Ops(const Config& config, const Kernels& kernels, ThreadPool& pool) : config_(config), kernels_(kernels), pool_(pool) {}

  // Memory for runs of up to `tokens` tokens with weights in `formats`.
  Status prepare(int64_t tokens, FormatSet formats);

  // Memory for attention over `positions`.
  Status reserve(int64_t positions);

  // Where a run stands: its rows, and the angles of their positions.
  struct Place {
    int64_t layer;
    std::span<const Row> rows;
    std::span<const Range> tiles;  // of the rows: those that read keys and values together
    const float *cos, *sin;        // (rows, head_dim / 2); cos null: positions are not turned in
    int64_t tokens() const { return static_cast<int64_t>(rows.size()); }
  };

  // Rows of one sequence that read keys and values together, at the most.
  static constexpr int64_t kTileTokens = 8;

  // y = RMSNorm(x) · weight for each token; x and y (tokens, n).
  void rms_norm(float* y, const float* x, const float* weight, int64_t tokens, int64_t n);

  // y = x · wᵀ; x (tokens, w.columns), y (tokens, w.rows).
  void product(float* y, const Matrix& w, const float* x, int64_t tokens);

  // y += x · wᵀ
  void add_product(float* y, const Matrix& w, const float* x, int64_t tokens);

  // y = silu(x · gateᵀ) · (x · upᵀ); y (tokens, gate.rows).
  void gated_product(float* y, const Matrix& gate, const Matrix& up, const float* x, int64_t tokens);

  // Queries, keys and values of x (tokens, hidden_size): projected, and where the model has it biased, normed and rotated. Queries go to q (tokens, num_attention_heads ·
  // head_dim), keys and values to the rows' caches.
  void project_heads(float* q, const LayerWeights& w, const float* x, const Place& place);

  // Causal grouped-query attention: out and q (tokens, num_attention_heads · head_dim); a row sees its sequence up to its own position.
  void attention(float* out, const float* q, const Place& place);

  // The rows' embeddings as float32: x (tokens, columns).
  void embed(float* x, const Matrix& embed_tokens, std::span<const Row> rows);

 private:
  // Quantizes x (tokens, columns) for those of the matrices that are panels; all have the same columns.
  void prepare_input(std::initializer_list<const Matrix*> matrices, const float* x, int64_t tokens);

  // Runs work(range of rows, ith) over the rows of a product; ranges begin at panels.
  template <typename Work>
  void run_rows(int64_t rows, int64_t tokens, const Work& work);

  // Rows of y = x · wᵀ, by one thread, of an input that was prepared. A range begins at a panel and ends at one or with the matrix.
  void multiply(float* y, const Matrix& w, const float* x, Range rows, int64_t tokens, int ith);

  // The same for rows of a block type, which are decoded a few at a time.
  void multiply_blocks(float* y, const Matrix& w, const float* x, Range rows, int64_t tokens, int ith);

  // Parts of project_heads and attention, each by one thread.
  void finish_head(float* head, const float* norm, const Place& place, int64_t token);
  struct AttentionScratch {
    uint8_t* queries;  // prepared
    float* scores;     // (tile queries, positions_)
    float* mixed;      // (tile queries, head_dim)
    float* totals;     // (tile queries)
  };
  AttentionScratch attention_scratch(int ith);
  void attend(float* out, const float* q, const Place& place, int64_t kv_head, Range tokens, int ith);

  const Config& config_;
  const Kernels& kernels_;
  ThreadPool& pool_;
  struct Quantized {
    QuantizedTokens tokens{};    // in the buffers below
    Buffer<uint8_t> values;
    Buffer<float> scales, sums;
    Status allocate(int64_t tokens, int64_t blocks);
  };
  Quantized quantized_[kPanelFormats];
  Buffer<float> kv_;             // (tokens, 2 · num_key_value_heads · head_dim): keys and values on their way to the cache
  Buffer<float> product_;        // (tokens, hidden_size) of add_product
  Buffer<float> up_;             // (tokens, intermediate_size)
  Buffer<uint8_t> scratch_;      // (threads, scratch_bytes_): an expanded panel, or decoded rows
  int64_t scratch_bytes_ = 0;
  Buffer<uint8_t> queries_;      // of AttentionScratch, for each thread
  Buffer<float> scores_, attention_;
  int64_t positions_ = 0;
};

}  // namespace qwasm
