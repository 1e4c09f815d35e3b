// Small Qwen3 folders made by hand, for tests that change one thing of a good folder; and a reader and writer of
// safetensors.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/core/capi_support.h"

namespace qwasm::capi_test {

struct Tensor {
  std::string name, dtype;
  std::vector<int64_t> shape;
  Bytes data;
};

inline void append(Bytes& out, const void* data, size_t size) {
  const auto* bytes = static_cast<const uint8_t*>(data);
  out.insert(out.end(), bytes, bytes + size);
}

// A safetensors file of any header text and any data.
inline Bytes with_header(const std::string& header, const Bytes& data) {
  Bytes file;
  const uint64_t length = header.size();
  append(file, &length, 8);
  append(file, header.data(), header.size());
  append(file, data.data(), data.size());
  return file;
}

// The header of a good file of `tensors`, as JSON to be changed, and their data.
inline Json header_of(const std::vector<Tensor>& tensors) {
  Json header = Json::object();
  size_t at = 0;
  for (const Tensor& tensor : tensors) {
    header[tensor.name] = {
        {"dtype", tensor.dtype}, {"shape", tensor.shape}, {"data_offsets", {at, at + tensor.data.size()}}};
    at += tensor.data.size();
  }
  return header;
}

inline Bytes data_of(const std::vector<Tensor>& tensors) {
  Bytes data;
  for (const Tensor& tensor : tensors) append(data, tensor.data.data(), tensor.data.size());
  return data;
}

inline Bytes safetensors(const std::vector<Tensor>& tensors) {
  return with_header(header_of(tensors).dump(), data_of(tensors));
}

// The tensors of a valid file.
inline std::map<std::string, Tensor> read_safetensors(const Bytes& file) {
  uint64_t length = 0;
  std::memcpy(&length, file.data(), 8);
  const Json header = Json::parse(file.begin() + 8, file.begin() + 8 + static_cast<int64_t>(length), nullptr, false);
  std::map<std::string, Tensor> tensors;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") continue;
    const auto data = file.begin() + 8 + static_cast<int64_t>(length);
    const auto begin = entry["data_offsets"][0].get<int64_t>(), end = entry["data_offsets"][1].get<int64_t>();
    tensors[name] = {name, entry["dtype"].get<std::string>(), entry["shape"].get<std::vector<int64_t>>(),
                     Bytes(data + begin, data + end)};
  }
  return tensors;
}

inline Floats floats_of(const Tensor& tensor) {
  EXPECT_EQ(tensor.dtype, "F32") << tensor.name;
  Floats values(tensor.data.size() / 4);
  std::memcpy(values.data(), tensor.data.data(), tensor.data.size());
  return values;
}

// Appends `value`, which bf16 and f16 hold exactly, in the stored form of `dtype`.
inline void append_value(Bytes& out, const std::string& dtype, float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  if (dtype == "F32") return append(out, &bits, 4);
  uint16_t half = static_cast<uint16_t>(bits >> 16);
  if (dtype == "F16" && value != 0) {
    half = static_cast<uint16_t>((half & 0x8000) | ((bits >> 23 & 0xff) - 112) << 10 | (bits >> 13 & 0x3ff));
  }
  append(out, &half, 2);
}

constexpr int kSmallVocab = 40, kSmallHidden = 16, kSmallFfn = 24, kSmallLayers = 2, kSmallHeads = 3, kSmallKvHeads = 1,
              kSmallHeadDim = 8;

// Seeded values -31/32 … 31/32 (norms 17/32 … 47/32), the same numbers whatever the stored form.
inline Tensor random_tensor(const std::string& name, const std::string& dtype, std::vector<int64_t> shape,
                            uint32_t seed) {
  const bool norm = shape.size() == 1;
  int64_t count = 1;
  for (const int64_t n : shape) count *= n;
  std::mt19937 random(seed);
  Tensor tensor{name, dtype, std::move(shape), {}};
  for (int64_t i = 0; i < count; i++) {
    const int draw = static_cast<int>(random() % (norm ? 31 : 63)) - (norm ? 15 : 31);
    append_value(tensor.data, dtype, (norm ? 1.0f : 0.0f) + static_cast<float>(draw) / 32.0f);
  }
  return tensor;
}

// All tensors of the small model; `with_head` adds an lm_head.weight that differs from the embedding.
inline std::vector<Tensor> small_tensors(const std::string& dtype = "F32", bool with_head = false) {
  std::vector<Tensor> tensors;
  const auto add = [&](const std::string& name, std::vector<int64_t> shape) {
    tensors.push_back(
        random_tensor(name + ".weight", dtype, std::move(shape), static_cast<uint32_t>(tensors.size()) + 1));
  };
  add("model.embed_tokens", {kSmallVocab, kSmallHidden});
  add("model.norm", {kSmallHidden});
  for (int layer = 0; layer < kSmallLayers; layer++) {
    const std::string prefix = "model.layers." + std::to_string(layer) + ".";
    add(prefix + "input_layernorm", {kSmallHidden});
    add(prefix + "self_attn.q_proj", {kSmallHeads * kSmallHeadDim, kSmallHidden});
    add(prefix + "self_attn.k_proj", {kSmallKvHeads * kSmallHeadDim, kSmallHidden});
    add(prefix + "self_attn.v_proj", {kSmallKvHeads * kSmallHeadDim, kSmallHidden});
    add(prefix + "self_attn.o_proj", {kSmallHidden, kSmallHeads * kSmallHeadDim});
    add(prefix + "self_attn.q_norm", {kSmallHeadDim});
    add(prefix + "self_attn.k_norm", {kSmallHeadDim});
    add(prefix + "post_attention_layernorm", {kSmallHidden});
    add(prefix + "mlp.gate_proj", {kSmallFfn, kSmallHidden});
    add(prefix + "mlp.up_proj", {kSmallFfn, kSmallHidden});
    add(prefix + "mlp.down_proj", {kSmallHidden, kSmallFfn});
  }
  if (with_head) add("lm_head", {kSmallVocab, kSmallHidden});
  return tensors;
}

inline Tensor& find(std::vector<Tensor>& tensors, const std::string& name) {
  return *std::find_if(tensors.begin(), tensors.end(), [&](const Tensor& tensor) { return tensor.name == name; });
}

inline Json small_config() {
  return {{"architectures", {"Qwen3ForCausalLM"}},
          {"model_type", "qwen3"},
          {"vocab_size", kSmallVocab},
          {"hidden_size", kSmallHidden},
          {"intermediate_size", kSmallFfn},
          {"num_hidden_layers", kSmallLayers},
          {"num_attention_heads", kSmallHeads},
          {"num_key_value_heads", kSmallKvHeads},
          {"head_dim", kSmallHeadDim},
          {"max_position_embeddings", 64},
          {"rms_norm_eps", 1e-6},
          {"rope_theta", 10000.0},
          {"tie_word_embeddings", true},
          {"hidden_act", "silu"},
          {"bos_token_id", 0},
          {"eos_token_id", 1}};
}

inline Folder small_folder(const Json& config = small_config(), const std::vector<Tensor>& tensors = small_tensors()) {
  return {{"config.json", bytes_of(config.dump())}, {"model.safetensors", safetensors(tensors)}};
}

inline Ids small_prompt() { return {3, 14, 15, 9, 26, 5, 35, 8, 9, 7, 0, 39}; }

// Logits at every position of small_prompt(); none, and a failed test, where the folder does not load.
inline Floats small_logits(const Folder& folder) {
  const Engine engine = must_load(folder);
  if (!engine) return {};
  return Sequence(engine).logits(small_prompt(), static_cast<int>(small_prompt().size()));
}

}  // namespace qwasm::capi_test
