// The weights' part of loading: from the tensor table to memory, by runs of whole rows.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>

#include "core/engine/load.h"
#include "core/quant/panel.h"

namespace qwasm {

namespace {

constexpr int64_t kRun = 8 << 20;   // bytes of one want, about
constexpr int64_t kRowGrain = kPanelRows;  // runs begin and end at whole panels
constexpr int64_t kAlignment = 64;

std::string shape_text(const std::vector<int64_t>& shape) {
  std::string text = "(";
  for (size_t i = 0; i < shape.size(); ++i) text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + ")";
}

// What to do where the weights find no room.
const char* hint_of(Loader::DType dtype) {
  if (dtype == Loader::DType::kExact) return "dtype 'q8' or 'q4' takes less";
  return dtype == Loader::DType::kQ8 ? "dtype 'q4' takes less" : "a smaller model takes less";
}

// A tensor inside a layer that the forward pass does not read (a bias, an adapter) would change the arithmetic if it were ignored.
// inv_freq is a constant that old files carry.
bool changes_arithmetic(const std::string& name) { return name.starts_with("model.layers.") && !name.ends_with(".rotary_emb.inv_freq"); }

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
    if (!tensor.format) {
      return error(Code::kUnsupported, "%s: tensor %s: dtype %s is not supported; BF16, F16 and F32 are", tensor.file.c_str(), slot.name.c_str(),
                   tensor.dtype.c_str());
    }
    found->push_back(&tensor);
  }
  for (const auto& [name, tensor] : model_->tensors) {
    if (changes_arithmetic(name) && !expected.contains(name)) {
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
  return options_.dtype == DType::kQ8 ? Format::kQ8 : options_.dtype == DType::kQ4 ? Format::kQ4 : tensor.format->format;
}

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
    if (slot.matrix) *slot.matrix = {place, format_of(slot, *found[i]), slot.rows, slot.columns};
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
  std::vector<size_t> order(slots_.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return found[a]->file != found[b]->file ? found[a]->file < found[b]->file : found[a]->begin < found[b]->begin;
  });
  Pending* run = nullptr;
  for (const size_t i : order) {
    const TensorInfo& tensor = *found[i];
    const Format format = tensor.format->format;
    const int64_t grain = slots_[i].columns * kRowGrain, count = slots_[i].rows * slots_[i].columns;
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
    if (bad < 0) format.decode(aligned.data(), piece.count, static_cast<float*>(places_[piece.slot]) + piece.first);
  }
  if (bad < 0) return {};
  return error(Code::kNotFinite, "%s: tensor %s: element %lld is NaN or infinite", file.c_str(), slot.name.c_str(),
               static_cast<long long>(piece.first + bad));
}

// On all threads, as many rows at a time as make a panel; pieces begin at a panel's first row, and end at its last or at the matrix's.
// *bad: the first element that is not finite, or -1.
Status Loader::take_matrix_rows(const Piece& piece, const char* bytes, const FormatInfo& format, int64_t* bad) {
  const Matrix& matrix = *slots_[piece.slot].matrix;
  const int64_t columns = matrix.columns, rows = piece.count / columns, first_row = piece.first / columns;
  auto* place = static_cast<uint8_t*>(places_[piece.slot]);
  const int64_t room = kPanelRows * columns;  // floats for rows as stored, and as many for them decoded
  Buffer<float> scratch;
  if (is_panel(matrix.format)) QW_TRY(scratch.allocate(static_cast<uint64_t>(pool_.used() * 2 * room), "rows that become panels"));
  std::atomic<int64_t> first_bad = piece.count;
  pool_.run(panels_of(rows), [&](Range range, int ith) {
    float* own = scratch.data() + ith * 2 * room;
    for (int64_t p = range.begin; p < range.end; ++p) {
      const int64_t row = p * kPanelRows, count = std::min(kPanelRows, rows - row);
      void* stored = is_panel(matrix.format) ? static_cast<void*>(own) : place + bytes_of(format.format, (first_row + row) * columns);
      std::memcpy(stored, bytes + bytes_of(format.format, row * columns), static_cast<size_t>(bytes_of(format.format, count * columns)));
      const int64_t found = format.find_not_finite(stored, count * columns);
      if (found >= 0) {
        for (int64_t known = first_bad; row * columns + found < known && !first_bad.compare_exchange_weak(known, row * columns + found);) {}
      } else if (is_panel(matrix.format)) {
        format.decode(stored, count * columns, own + room);
        encode_panel(matrix.format, own + room, count, columns, place + (first_row / kPanelRows + p) * panel_bytes(matrix.format, columns));
      }
    }
  });
  *bad = first_bad < piece.count ? first_bad.load() : -1;
  return {};
}

}  // namespace qwasm
