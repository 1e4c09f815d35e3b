// The tensors of a GGUF file: which they are, and their rows out of the weights' memory.
#include "core/engine/export.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/base/half.h"
#include "core/model/rope.h"
#include "core/quant/ggml_row.h"

namespace qwasm {

namespace {

constexpr int64_t kPiece = 1 << 20;  // bytes, about

int64_t aligned(int64_t bytes) { return (bytes + kGgufAlignment - 1) / kGgufAlignment * kGgufAlignment; }

// What a matrix becomes.
Status type_of(const Matrix& matrix, const std::string& name, GgmlType* type) {
  const bool whole_blocks = matrix.columns % kBlockColumns == 0;
  *type = GgmlType::kF16;
  if (!is_panel(matrix.format)) return {};
  if (matrix.format != Format::kQ8 && matrix.format != Format::kQ4) {
    return error(Code::kUnsupported, "tensor %s: no type of GGUF holds what its stored type became in memory; as q8 or q4 it can be written", name.c_str());
  }
  *type = !whole_blocks ? GgmlType::kF32 : matrix.format == Format::kQ8 ? GgmlType::kQ8_0 : GgmlType::kQ4_0;
  return {};
}

int64_t bytes_of_row(GgmlType type, int64_t columns) {
  switch (type) {
    case GgmlType::kF32: return columns * 4;
    case GgmlType::kF16: return columns * 2;
    case GgmlType::kQ8_0: return columns / kBlockColumns * ggml_block_bytes(Format::kQ8);
    case GgmlType::kQ4_0: return columns / kBlockColumns * ggml_block_bytes(Format::kQ4);
  }
  return 0;
}

}  // namespace

Status GgufExport::make(Model& model, const ExportMetadata& metadata, std::unique_ptr<GgufExport>* out) {
  auto made = std::make_unique<GgufExport>();
  QW_TRY(check_sayable(model, &made->architecture_));
  made->head_dim_ = model.config.head_dim;
  made->slots_ = weight_slots(model.config, model.tensors, &model.weights);
  if (model.config.rope.rope_type == RopeParameters::Type::kLlama3) made->add_rope_factors(model.config.rope);
  QW_TRY(made->place_tensors());
  QW_TRY(made->write_head(metadata));
  *out = std::move(made);
  return {};
}

void GgufExport::add_rope_factors(const RopeParameters& rope) {
  RopeParameters plain;
  plain.rope_theta = rope.rope_theta;
  const Rope unscaled(plain, head_dim_, nullptr), scaled(rope, head_dim_, nullptr);
  for (size_t i = 0; i < scaled.inv_freq().size(); ++i) rope_factors_.push_back(unscaled.inv_freq()[i] / scaled.inv_freq()[i]);
  rope_factors_place_ = rope_factors_.data();
  slots_.push_back({"rope_freqs.weight", head_dim_ / 2, 1, nullptr, &rope_factors_place_});
}

Status GgufExport::place_tensors() {
  int64_t offset = 0, columns = 0, widest = 0;
  for (const WeightSlot& slot : slots_) {
    Place place{GgmlType::kF32, 1, slot.rows * 4, offset};
    if (slot.matrix) {
      QW_TRY(type_of(*slot.matrix, slot.name, &place.type));
      place.rows = slot.rows;
      place.row_bytes = bytes_of_row(place.type, slot.columns);
    }
    offset = aligned(place.end());
    columns = std::max(columns, slot.columns);
    widest = std::max(widest, place.row_bytes);
    places_.push_back(place);
  }
  QW_TRY(row_.allocate(static_cast<uint64_t>(columns), "a row of weights"));
  return piece_.allocate(static_cast<uint64_t>(std::max(kPiece, widest) + kGgufAlignment), "a piece of a GGUF file");
}

void GgufExport::write_tensor_list(GgufWriter* out) const {
  for (size_t i = 0; i < slots_.size(); ++i) {
    const WeightSlot& slot = slots_[i];
    const int64_t dimensions[] = {slot.matrix ? slot.columns : slot.rows, slot.rows};
    out->add_tensor(gguf_name(slot.name), {dimensions, slot.matrix ? size_t{2} : size_t{1}}, places_[i].type, places_[i].offset);
  }
}

Status GgufExport::write_head(const ExportMetadata& metadata) {
  uint64_t keys = 0;
  for (const bool counts : {true, false}) {
    GgufWriter out(architecture_->name, counts ? nullptr : head_.data());
    out.begin(slots_.size(), keys);
    write_metadata(metadata, *architecture_, places_.front().type, &out);  // the embedding's type is that of most
    write_tensor_list(&out);
    out.pad();
    keys = out.keys();
    if (counts) QW_TRY(head_.allocate(out.bytes(), "the head of a GGUF file"));
  }
  bytes_ = static_cast<int64_t>(head_.size()) + aligned(places_.back().end());
  return {};
}

Status GgufExport::next(std::span<const uint8_t>* piece) {
  if (!gave_head_) {
    gave_head_ = true;
    *piece = {head_.data(), head_.size()};
    return {};
  }
  *piece = {};
  if (slot_ == slots_.size()) return {};
  const Place& place = places_[slot_];
  const int64_t count = std::min(place.rows - next_row_, std::max<int64_t>(kPiece / place.row_bytes, 1));
  for (int64_t i = 0; i < count; ++i) QW_TRY(write_row(next_row_ + i, piece_.data() + i * place.row_bytes));
  int64_t bytes = count * place.row_bytes;
  next_row_ += count;
  if (next_row_ == place.rows) {
    const int64_t padding = aligned(place.end()) - place.end();
    std::memset(piece_.data() + bytes, 0, static_cast<size_t>(padding));
    bytes += padding;
    next_row_ = 0;
    ++slot_;
  }
  *piece = {piece_.data(), static_cast<size_t>(bytes)};
  return {};
}

Status GgufExport::write_row(int64_t row, uint8_t* out) {
  const WeightSlot& slot = slots_[slot_];
  const Place& place = places_[slot_];
  if (slot.vector) {
    std::memcpy(out, *slot.vector, static_cast<size_t>(place.row_bytes));
    return {};
  }
  const Matrix& matrix = *slot.matrix;
  const int64_t from = source_row(row);
  if (place.type == GgmlType::kF16) return write_half_row(from, out);
  const auto* panels = static_cast<const uint8_t*>(matrix.data);
  if (place.type == GgmlType::kF32) decode_panel_row(matrix.format, panels, from, matrix.columns, reinterpret_cast<float*>(out));
  else write_ggml_row(matrix.format, panels, from, matrix.columns, out);
  return {};
}

Status GgufExport::write_half_row(int64_t row, uint8_t* out) {
  const Matrix& matrix = *slots_[slot_].matrix;
  const auto* rows = static_cast<const uint8_t*>(matrix.data);
  format_info(matrix.format).decode(rows + bytes_of(matrix.format, row * matrix.columns), matrix.columns, row_.data());
  auto* halves = reinterpret_cast<uint16_t*>(out);
  for (int64_t i = 0; i < matrix.columns; ++i) {
    halves[i] = f32_to_f16(row_[static_cast<size_t>(i)]);
    if ((halves[i] & 0x7fff) != 0x7c00) continue;
    return error(Code::kUnsupported, "tensor %s: expected weights that float16 can hold, which ends at 65504, found %g at row %lld, column %lld; q8 and q4 can be written",
                 slots_[slot_].name.c_str(), static_cast<double>(row_[static_cast<size_t>(i)]), static_cast<long long>(row), static_cast<long long>(i));
  }
  return {};
}

// The row of the matrix in memory that is the file's row `row`.
int64_t GgufExport::source_row(int64_t row) const {
  const bool turned = slots_[slot_].name.ends_with("q_proj.weight") || slots_[slot_].name.ends_with("k_proj.weight");
  if (!architecture_->interleaves_heads || !turned) return row;
  const int64_t i = row % head_dim_;
  return row - i + i / 2 + i % 2 * (head_dim_ / 2);
}

}  // namespace qwasm
