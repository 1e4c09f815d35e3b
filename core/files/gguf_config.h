// A GGUF file's metadata in the names of config.json, so that both kinds of files go one way from there.
#pragma once

#include <string>
#include <string_view>

#include "core/files/gguf.h"
#include "core/files/json_view.h"

namespace qwasm {

struct GgufArchitecture {
  std::string_view name, model_type;
  // Whether the rows of q_proj and k_proj stand in pairs (0, n/2), (1, n/2 + 1), … of each head of n: llama.cpp rotates neighbours in these architectures.
  bool interleaves_heads;
};

// What files of that model_type of config.json say; null where they have no name for it.
const GgufArchitecture* gguf_architecture_of(std::string_view model_type);

// What the tensors say of a model and metadata does not.
struct GgufTensors {
  int64_t vocab_size = 0;  // rows of token_embd
  bool has_head = false;   // output.weight is there, so the head is not tied
};

// An architecture that qwasm does not know, and a key of it that could change the arithmetic, are refused by name.
Status gguf_config(const GgufMetadata& metadata, const std::string& file, const GgufTensors& tensors, Json* config);

// How the file wants to be sampled (general.sampling.*), in the names of generation_config.json; null where it does not say.
Json gguf_generation_config(const GgufMetadata& metadata);

bool gguf_interleaves_heads(const GgufMetadata& metadata);

}  // namespace qwasm
