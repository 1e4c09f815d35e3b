// The weights' part of loading: from the tensor table to memory, by runs of whole rows.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <numeric>

#include "core/base/sort.h"
#include "core/engine/load.h"
#include "core/quant/panel.h"

namespace qwasm {

namespace {

constexpr int64_t kRun = 8 << 20;   // bytes of one want, about
constexpr int64_t kAlignment = 64;

std::string shape_text(const std::vector<int64_t>& shape) {
  std::string text = "(";
  for (size_t i = 0; i < shape.size(); ++i) text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + ")";
}

// What to do where the weights find no room.
const char* hint_of(Loader::DType dtype) {
  if (dtype == Loader::DType::kExact) return "dtype 'q8' or 'q4' takes less";
  return dtype == Loader::DType::kQ4 ? "a smaller model takes less" : "dtype 'q4' takes less";
}

// A tensor inside a layer that the forward pass does not read (a bias, an adapter) would change the arithmetic if it were ignored.
// rotary_emb and attn_rot_embd are constants that old files carry. GGUF files hold nothing else beside a classifier.
bool changes_arithmetic(const std::string& name, const std::string& root, bool gguf) {
  if (name.ends_with(".rotary_emb.inv_freq") || name.ends_with(".attn_rot_embd.weight")) return false;
  return name.starts_with(root + "layers.") || (gguf && !name.starts_with("cls."));
}

// Where row `row` stands in a file in which the halves of each head's `head` rows are interleaved (0: they are not).
int64_t row_in_file(int64_t row, int64_t head) {
  if (head == 0) return row;
  const int64_t within = row % head, half = head / 2;
  return row - within + within % half * 2 + within / half;
}

}  // namespace

Status Loader::find_tensors(std::vector<const TensorInfo*>* found) {
  std::map<std::string_view, bool> expected;
  for (const WeightSlot& slot : slots_) {
    expected[slot.name] = true;
    const auto place = model_->tensors.find(slot.name);
    if (place == model_->tensors.end()) {
      const char* why = slot.name == "lm_head.weight" ? " (config.json says tie_word_embeddings: false)" : "";
      return error(Code::kMissing, "tensor %s is missing from the weights%s", slot.name.c_str(), why);
    }
    const TensorInfo& tensor = place->second;
    const std::vector<int64_t> shape = slot.vector ? std::vector<int64_t>{slot.rows} : std::vector<int64_t>{slot.rows, slot.columns};
    if (tensor.shape != shape) {
      return error(Code::kInvalidFile, "%s: tensor %s: expected shape %s by config.json, found %s", tensor.file.c_str(), slot.name.c_str(),
                   shape_text(shape).c_str(), shape_text(tensor.shape).c_str());
    }
    if (!tensor.format || (slot.vector && tensor.format->elements_per_block > 1)) {
      return error(Code::kUnsupported, "%s: tensor %s: dtype %s is not supported", tensor.file.c_str(), slot.name.c_str(),
                   tensor.dtype.c_str());
    }
    found->push_back(&tensor);
  }
  const std::string root = name_root(model_->tensors);
  for (const auto& [name, tensor] : model_->tensors) {
    if (changes_arithmetic(name, root, !options_.gguf.empty()) && !expected.contains(name)) {
      return error(Code::kUnsupported, "%s: tensor %s is not part of %s as qwasm implements it", tensor.file.c_str(), name.c_str(),
                   model_->config.architecture.c_str());
    }
  }
  return {};
}

Loader::DType Loader::choose_dtype() const {
  int64_t parameters = 0, bytes = 0;
  for (const WeightSlot& slot : slots_) {
    parameters += slot.rows * slot.columns;
    bytes += matrix_bytes(slot.vector ? Format::kF32 : Format::kQ8, slot.rows, slot.columns);
  }
  return parameters <= kMostQ8Parameters && bytes <= options_.memory_budget ? DType::kQ8 : DType::kQ4;
}

Format Loader::format_of(const WeightSlot& slot, const TensorInfo& tensor) const {
  if (slot.vector) return Format::kF32;
  switch (options_.dtype) {
    case DType::kQ8: return Format::kQ8;
    case DType::kQ4: return Format::kQ4;
    case DType::kStored: return tensor.format->panel;
    default: return tensor.format->format;
  }
}

// Of q_proj and k_proj in GGUF files of some architectures: the rows of one head, whose halves are interleaved; else 0.
int64_t Loader::interleaved_rows(const WeightSlot& slot) const {
  const bool rotates = slot.name.find(".q_proj.") != std::string::npos || slot.name.find(".k_proj.") != std::string::npos;
  return interleaves_heads_ && rotates ? model_->config.head_dim : 0;
}

// Runs begin and end at whole panels, and at whole heads where those are interleaved.
int64_t Loader::row_grain(const WeightSlot& slot) const { return std::lcm(kPanelRows, std::max<int64_t>(interleaved_rows(slot), 1)); }

// All weights stand in one allocation: memory grows once, and its size is known before the first byte is fetched.
Status Loader::place_weights(const std::vector<const TensorInfo*>& found) {
  Weights& weights = model_->weights;
  std::vector<uint64_t> offsets;
  uint64_t total = 0;
  for (size_t i = 0; i < slots_.size(); ++i) {
    const auto bytes = static_cast<uint64_t>(matrix_bytes(format_of(slots_[i], *found[i]), slots_[i].rows, slots_[i].columns));
    offsets.push_back(total);
    total += (bytes + kAlignment - 1) / kAlignment * kAlignment;
    weight_bytes_ += found[i]->end - found[i]->begin;
  }
  tensors_ = found;
  QW_TRY(weights.memory.allocate(total, "weights", hint_of(options_.dtype)));
  for (size_t i = 0; i < slots_.size(); ++i) {
    const WeightSlot& slot = slots_[i];
    uint8_t* place = weights.memory.data() + offsets[i];
    places_.push_back(place);
    if (slot.vector) *slot.vector = reinterpret_cast<float*>(place);
    if (slot.matrix) {
      *slot.matrix = {place, format_of(slot, *found[i]), slot.rows, slot.columns};
      weights.formats.add(slot.matrix->format);
    }
  }
  if (model_->config.tie_word_embeddings) weights.lm_head = weights.embed_tokens;
  name_layout(offsets);
  return {};
}

// The dtype for people, and a hash (FNV-1a) over all that decides which bytes stand where.
void Loader::name_layout(const std::vector<uint64_t>& offsets) {
  std::string table = "panels " + std::to_string(kPanelVersion);
  for (size_t i = 0; i < slots_.size(); ++i) {
    const WeightSlot& slot = slots_[i];
    const int format = static_cast<int>(slot.matrix ? slot.matrix->format : Format::kF32);
    for (const int64_t value : {static_cast<int64_t>(format), slot.rows, slot.columns, static_cast<int64_t>(offsets[i])}) {
      table += ' ' + std::to_string(value);
    }
    table += slot.name;
  }
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : table) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  char text[24];
  std::snprintf(text, sizeof text, "-%016llx", static_cast<unsigned long long>(hash));
  layout_ = std::string(kDTypeNames[static_cast<int>(options_.dtype)]) + text;
}

Status Loader::restore_weights() {
  QW_TRY(require_no_failure());
  if (layout_.empty() || loaded_) return error(Code::kWrongState, "weights are restored after the headers were read and before the rows have come");
  ready_.clear();
  pending_.clear();  // once the headers were read, only rows are wanted
  loaded_ = true;
  return {};
}

// In the order of the files, tensors that follow each other share a run; large ones are cut into several.
void Loader::plan_runs(const std::vector<const TensorInfo*>& found) {
  std::vector<uint64_t> order(slots_.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  const auto before = [](const void* tensors, uint64_t i, uint64_t j) {
    const TensorInfo &a = *static_cast<const TensorInfo* const*>(tensors)[i], &b = *static_cast<const TensorInfo* const*>(tensors)[j];
    return a.file != b.file ? a.file < b.file : a.begin < b.begin;
  };
  sort_words(&order, before, found.data());
  Pending* run = nullptr;
  for (const size_t i : order) {
    const TensorInfo& tensor = *found[i];
    const Format format = tensor.format->format;
    const int64_t grain = slots_[i].columns * row_grain(slots_[i]), count = slots_[i].rows * slots_[i].columns;
    for (int64_t first = 0; first < count;) {
      const int64_t at = tensor.begin + bytes_of(format, first);
      const bool follows = run && run->want.file == tensor.file && run->want.offset + run->want.length == at && run->want.length < kRun;
      if (!follows) {
        ask(Role::kRows, tensor.file, /*optional=*/false, at, 0);
        run = &pending_.rbegin()->second;
      }
      const int64_t room = std::max<int64_t>((kRun - run->want.length) / bytes_of(format, grain), 1) * grain;
      const int64_t taken = std::min(room, count - first);
      run->pieces.push_back({i, run->want.length, first, taken});
      run->want.length += bytes_of(format, taken);
      first += taken;
    }
  }
}

Status Loader::take_rows(const Pending& pending, std::span<const char> bytes) {
  for (const Piece& piece : pending.pieces) QW_TRY(take_piece(piece, bytes.data() + piece.offset, pending.want.file));
  return {};
}

// Files do not promise alignment, so bytes are copied before they are looked at: rows that are kept as stored to their place, others to scratch.
Status Loader::take_piece(const Piece& piece, const char* bytes, const std::string& file) {
  const WeightSlot& slot = slots_[piece.slot];
  const FormatInfo& format = *tensors_[piece.slot]->format;
  int64_t bad = -1;
  if (slot.matrix) {
    QW_TRY(take_matrix_rows(piece, bytes, format, &bad));
  } else {
    Buffer<uint8_t> aligned;
    QW_TRY(aligned.allocate(static_cast<uint64_t>(bytes_of(format.format, piece.count)), "values that arrived"));
    std::memcpy(aligned.data(), bytes, aligned.size());
    bad = format.find_not_finite(aligned.data(), piece.count);
    if (bad < 0) take_values(piece, aligned.data(), format);
  }
  if (bad < 0) return {};
  return error(Code::kNotFinite, "%s: tensor %s: element %lld is NaN or infinite", file.c_str(), slot.name.c_str(),
               static_cast<long long>(piece.first + bad));
}

// Values of a vector; a bias of rows that are interleaved is so too.
void Loader::take_values(const Piece& piece, const uint8_t* stored, const FormatInfo& format) {
  const int64_t head = interleaved_rows(slots_[piece.slot]), bytes = format.bytes_per_block;
  auto* values = static_cast<float*>(places_[piece.slot]) + piece.first;
  if (head == 0) return format.decode(stored, piece.count, values);
  for (int64_t i = 0; i < piece.count; ++i) format.decode(stored + row_in_file(i, head) * bytes, 1, values + i);
}

// On all threads, as many rows at a time as make a panel; pieces begin at a panel's first row, and end at its last or at the matrix's. A block
// type whose own panel is wanted goes into it as it is, others through float32.
// *bad: the first element that is not finite, or -1.
Status Loader::take_matrix_rows(const Piece& piece, const char* bytes, const FormatInfo& format, int64_t* bad) {
  const Matrix& matrix = *slots_[piece.slot].matrix;
  const int64_t columns = matrix.columns, rows = piece.count / columns, first_row = piece.first / columns;
  auto* place = static_cast<uint8_t*>(places_[piece.slot]);
  const int64_t room = kPanelRows * columns;  // floats for rows as stored, and as many for them decoded
  Buffer<float> scratch;
  const int64_t row_bytes = bytes_of(format.format, columns), head = interleaved_rows(slots_[piece.slot]);
  const bool keeps = matrix.format == format.format;
  if (!keeps) QW_TRY(scratch.allocate(static_cast<uint64_t>(pool_.used() * 2 * room), "rows that become others"));
  std::atomic<int64_t> first_bad = piece.count;
  pool_.run(panels_of(rows), [&](Range range, int ith) {
    float* own = scratch.data() + ith * 2 * room;
    for (int64_t p = range.begin; p < range.end; ++p) {
      const int64_t row = p * kPanelRows, count = std::min(kPanelRows, rows - row);
      auto* stored = keeps ? place + (first_row + row) * row_bytes : reinterpret_cast<uint8_t*>(own);
      for (int64_t r = 0; r < count; ++r) {
        std::memcpy(stored + r * row_bytes, bytes + row_in_file(row + r, head) * row_bytes, static_cast<size_t>(row_bytes));
      }
      const int64_t found = format.find_not_finite(stored, count * columns);
      if (found >= 0) {
        for (int64_t known = first_bad; row * columns + found < known && !first_bad.compare_exchange_weak(known, row * columns + found);) {}
      } else if (!keeps) {
        uint8_t* panel = place + (first_row / kPanelRows + p) * panel_bytes(matrix.format, columns);
        if (matrix.format == format.panel) {
          pack_panel(format, stored, count, columns, panel);
        } else {
          format.decode(stored, count * columns, own + room);
          encode_panel(matrix.format, own + room, count, columns, panel);
        }
      }
    }
  });
  *bad = first_bad < piece.count ? first_bad.load() : -1;
  return {};
}

}  // namespace qwasm
