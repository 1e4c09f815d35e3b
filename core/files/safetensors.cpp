// Parses safetensors headers and the index of shards.
#include "core/files/safetensors.h"

#include <algorithm>

#include "core/base/sort.h"
#include "core/files/json_view.h"

namespace qwasm {

namespace {

constexpr int64_t kLargestOffset = int64_t{1} << 53;

// The product of the shape, or -1 where it is not below 2^53.
int64_t element_count(const std::vector<int64_t>& shape) {
  int64_t count = 1;
  for (const int64_t extent : shape) {
    if (extent != 0 && count > kLargestOffset / extent) return -1;
    count *= extent;
  }
  return count;
}

Status parse_tensor(const Json& entry, const std::string& where, int64_t data_begin, TensorInfo* tensor) {
  if (!entry.is_object()) return error(Code::kInvalidFile, "%s: expected an object, found %s", where.c_str(), describe(entry).c_str());
  const Fields fields(entry, where);
  QW_TRY(fields.text("dtype", Presence::kRequired, &tensor->dtype));
  if (!entry.contains("shape") || !entry["shape"].is_array()) return error(Code::kInvalidFile, "%s: shape: expected an array", where.c_str());
  QW_TRY(fields.integers("shape", 0, kLargestOffset, Presence::kRequired, &tensor->shape));
  std::vector<int64_t> offsets;
  QW_TRY(fields.integers("data_offsets", 0, kLargestOffset / 2, Presence::kRequired, &offsets));
  if (offsets.size() != 2 || offsets[0] > offsets[1]) {
    return error(Code::kInvalidFile, "%s: data_offsets: expected [begin, end] with begin <= end", where.c_str());
  }
  tensor->begin = data_begin + offsets[0];
  tensor->end = data_begin + offsets[1];
  tensor->format = find_format(tensor->dtype);
  const int64_t count = element_count(tensor->shape), found = offsets[1] - offsets[0];
  if (count < 0) return error(Code::kInvalidFile, "%s: shape: more than 2^53 elements", where.c_str());
  if (tensor->format && (count > kLargestOffset / 8 || bytes_of(tensor->format->format, count) != found)) {
    return error(Code::kInvalidFile, "%s: expected %lld elements of %s, found %lld bytes", where.c_str(), static_cast<long long>(count),
                 tensor->dtype.c_str(), static_cast<long long>(found));
  }
  return {};
}

// Sorted by their offsets, tensors must follow each other without gap or overlap and end with the file.
Status check_layout(const std::vector<std::pair<const std::string*, const TensorInfo*>>& tensors, const std::string& file, int64_t data_begin,
                    int64_t file_size) {
  int64_t at = data_begin;
  for (const auto& [name, tensor] : tensors) {
    if (tensor->begin != at) {
      return error(Code::kInvalidFile, "%s: tensor %s: %s the data before it, which ends at byte %lld; found begin at byte %lld", file.c_str(),
                   name->c_str(), tensor->begin < at ? "overlaps" : "leaves a gap after", static_cast<long long>(at),
                   static_cast<long long>(tensor->begin));
    }
    at = tensor->end;
    if (file_size >= 0 && at > file_size) {
      return error(Code::kInvalidFile, "%s: tensor %s ends at byte %lld, past the end of the file of %lld bytes (is it cut?)", file.c_str(),
                   name->c_str(), static_cast<long long>(at), static_cast<long long>(file_size));
    }
  }
  if (file_size >= 0 && at != file_size) {
    return error(Code::kInvalidFile, "%s: the last tensor ends at byte %lld, but the file has %lld bytes", file.c_str(),
                 static_cast<long long>(at), static_cast<long long>(file_size));
  }
  return {};
}

// Index files come from strangers: a name must not lead out of the folder.
bool is_plain_file_name(const std::string& name) {
  if (name.empty() || name.size() > 255 || name[0] == '.') return false;
  return std::all_of(name.begin(), name.end(), [](unsigned char c) { return c >= 0x20 && c != '/' && c != '\\' && c != ':' && c != '?' && c != '#' && c != '%' && c != 0x7f; });
}

}  // namespace

Status parse_safetensors_prefix(std::span<const char> bytes, const std::string& file, int64_t file_size, int64_t* header_length) {
  if (bytes.size() < static_cast<size_t>(kSafetensorsPrefix)) {
    return error(Code::kInvalidFile, "%s: expected a safetensors file, found only %zu bytes", file.c_str(), bytes.size());
  }
  uint64_t length = 0;
  for (int i = 7; i >= 0; --i) length = length << 8 | static_cast<unsigned char>(bytes[static_cast<size_t>(i)]);
  const int64_t room = file_size < 0 ? kLargestSafetensorsHeader : std::max<int64_t>(file_size - kSafetensorsPrefix, 0);
  const auto largest = static_cast<uint64_t>(std::min(room, kLargestSafetensorsHeader));
  if (length < 2 || length > largest) {
    std::string beginning(bytes.begin(), bytes.begin() + kSafetensorsPrefix);
    for (char& c : beginning) c = c >= 0x20 && c < 0x7f ? c : '.';
    return error(Code::kInvalidFile, "%s: expected a safetensors header of 2 to %llu bytes, found a length of %llu (the file begins with \"%s\")",
                 file.c_str(), static_cast<unsigned long long>(largest), static_cast<unsigned long long>(length), beginning.c_str());
  }
  *header_length = static_cast<int64_t>(length);
  return {};
}

Status parse_safetensors_header(std::span<const char> bytes, const std::string& file, int64_t file_size, TensorTable* table) {
  Json header;
  QW_TRY(parse_json_object(bytes, file + ": header", &header));
  const int64_t data_begin = kSafetensorsPrefix + static_cast<int64_t>(bytes.size());
  std::vector<std::pair<const std::string*, const TensorInfo*>> tensors;
  for (auto entry = header.begin(); entry != header.end(); ++entry) {
    if (entry.key() == "__metadata__") {
      if (!entry->is_object()) return error(Code::kInvalidFile, "%s: __metadata__: expected an object, found %s", file.c_str(), describe(*entry).c_str());
      continue;
    }
    TensorInfo tensor;
    tensor.file = file;
    QW_TRY(parse_tensor(*entry, file + ": tensor " + to_text(Json(entry.key())), data_begin, &tensor));
    const auto [place, fresh] = table->emplace(entry.key(), std::move(tensor));
    if (!fresh) {
      return error(Code::kInvalidFile, "%s: tensor %s stands in %s too", file.c_str(), entry.key().c_str(), place->second.file.c_str());
    }
    tensors.emplace_back(&place->first, &place->second);
  }
  using Place = std::pair<const std::string*, const TensorInfo*>;
  sort_items<Place>(&tensors, [](const Place& a, const Place& b) {
    return a.second->begin != b.second->begin ? a.second->begin < b.second->begin : a.second->end < b.second->end;
  });
  return check_layout(tensors, file, data_begin, file_size);
}

Status parse_shard_index(std::span<const char> bytes, const std::string& file, std::map<std::string, std::string>* weight_map) {
  Json index;
  QW_TRY(parse_json_object(bytes, file, &index));
  const Json* map = nullptr;
  QW_TRY(Fields(index, file).object("weight_map", Presence::kRequired, &map));
  for (auto entry = map->begin(); entry != map->end(); ++entry) {
    const auto* name = entry->get_ptr<const Json::string_t*>();
    if (!name || !is_plain_file_name(*name)) {
      return error(Code::kInvalidFile, "%s: weight_map: %s: expected the name of a file in the same folder, found %s", file.c_str(),
                   to_text(Json(entry.key())).c_str(), describe(*entry).c_str());
    }
    (*weight_map)[entry.key()] = *name;
  }
  if (weight_map->empty()) return error(Code::kInvalidFile, "%s: weight_map names no tensor", file.c_str());
  return {};
}

}  // namespace qwasm
