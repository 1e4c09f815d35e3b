// The weights of a model, and the one table of their names and shapes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/buffer.h"
#include "core/files/safetensors.h"
#include "core/model/config.h"
#include "core/quant/format.h"

namespace qwasm {

// A (rows, columns) matrix: row-major as stored (quant/format.h), or panels of rows (quant/panel.h).
struct Matrix {
  const void* data = nullptr;
  Format format = Format::kF32;
  int64_t rows = 0, columns = 0;
};

struct LayerWeights {
  const float* input_layernorm = nullptr;  // (hidden_size)
  Matrix q_proj;                           // (num_attention_heads · head_dim, hidden_size)
  Matrix k_proj, v_proj;                   // (num_key_value_heads · head_dim, hidden_size)
  const float *q_bias = nullptr, *k_bias = nullptr, *v_bias = nullptr;  // (rows of their matrices); null: none
  const float *q_norm = nullptr, *k_norm = nullptr;                    // (head_dim); null: none
  Matrix o_proj;                           // (hidden_size, num_attention_heads · head_dim)
  const float* post_attention_layernorm = nullptr;  // (hidden_size)
  Matrix gate_proj, up_proj;               // (intermediate_size, hidden_size)
  Matrix down_proj;                        // (hidden_size, intermediate_size)
};

struct Weights {
  Matrix embed_tokens;  // (vocab_size, hidden_size)
  std::vector<LayerWeights> layers;
  const float* norm = nullptr;  // (hidden_size)
  Matrix lm_head;               // (vocab_size, hidden_size); embed_tokens itself where tie_word_embeddings; no data: there is none
  const float* rope_factors = nullptr;  // (head_dim / 2), which divide inv_freq; null: none
  FormatSet formats;            // of all matrices
  Buffer<uint8_t> memory;       // what all of the above point into
};

// One row of the table: a name in Hugging Face's files, the shape it must have, and the place it goes to (exactly one of the two).
struct WeightSlot {
  std::string name;
  int64_t rows, columns;  // a vector has one column
  Matrix* matrix;         // kept as stored, or becomes panels
  const float** vector;   // becomes float32
};

// What the names of all but the head begin with: "model.", or nothing in folders of a model that was saved without its head, such as
// Qwen3-Embedding's.
const char* name_root(const TensorTable& tensors);

// All weights that the forward pass of `config` reads, by the names that they have in `tensors`; `weights->layers` gets its size. A tied head is not
// among them, nor is one that was not saved.
std::vector<WeightSlot> weight_slots(const Config& config, const TensorTable& tensors, Weights* weights);

// "blk.0.attn_q.weight" of a GGUF file is "model.layers.0.self_attn.q_proj.weight". A name inside a block that has no counterpart keeps its end, any
// other all of it.
std::string hugging_face_name(std::string_view gguf_name);

// The other way; all names of weight_slots have a counterpart.
std::string gguf_name(std::string_view hugging_face_name);

}  // namespace qwasm
