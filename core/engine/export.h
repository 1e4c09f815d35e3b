// A loaded model as one GGUF file, made piece by piece: a head with all metadata, then tensor after tensor as they stand in memory.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/engine/load.h"
#include "core/files/gguf_config.h"
#include "core/files/gguf_writer.h"

namespace qwasm {

// What the head tells besides the tensors; see export_metadata.cpp.
struct ExportMetadata {
  const Model& model;
  std::vector<int64_t> eos_token_ids;  // in order; several, all of which end an answer
  std::string name;                    // what the file calls the model; may be empty
};

// kUnsupported where GGUF has no words for something of the model.
Status check_sayable(const Model& model, const GgufArchitecture** architecture);

void write_metadata(const ExportMetadata& metadata, const GgufArchitecture& architecture, GgmlType main_type, GgufWriter* out);

class GgufExport {
 public:
  // The model's weights must be there, and outlive this. q8 becomes Q8_0 and q4 Q4_0 with the very values that are in memory, and F32 where a row is
  // not whole blocks; what is kept as stored becomes F16; norms and biases are F32. Panels with minimums have no type that holds their values.
  static Status make(Model& model, const ExportMetadata& metadata, std::unique_ptr<GgufExport>* out);

  // Of the whole file.
  int64_t bytes() const { return bytes_; }

  // The next piece, of about a MiB, in the file's order; empty at the end. Valid until the next call.
  Status next(std::span<const uint8_t>* piece);

 private:
  // Where a slot's tensor stands, and as what.
  struct Place {
    GgmlType type;
    int64_t rows, row_bytes;  // a vector is one row
    int64_t offset;           // from the first tensor

    int64_t end() const { return offset + rows * row_bytes; }
  };

  void add_rope_factors(const RopeParameters& rope);
  Status place_tensors();
  Status write_head(const ExportMetadata& metadata);
  void write_tensor_list(GgufWriter* out) const;
  Status write_row(int64_t row, uint8_t* out);
  Status write_half_row(int64_t row, uint8_t* out);
  int64_t source_row(int64_t row) const;

  const GgufArchitecture* architecture_ = nullptr;
  int64_t head_dim_ = 0;
  // What inv_freq is divided by (head_dim / 2): how GGUF tells Llama 3's scaling.
  std::vector<float> rope_factors_;
  const float* rope_factors_place_ = nullptr;
  std::vector<WeightSlot> slots_;
  std::vector<Place> places_;  // beside slots_
  int64_t bytes_ = 0;
  Buffer<uint8_t> head_, piece_;
  Buffer<float> row_;  // of the widest matrix
  bool gave_head_ = false;
  size_t slot_ = 0;  // where the next piece begins
  int64_t next_row_ = 0;
};

}  // namespace qwasm
