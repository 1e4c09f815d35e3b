// Parses GGUF headers. Nothing is believed before it was held against the bytes that can be there.
#include "core/files/gguf.h"

#include <algorithm>
#include <bit>

#include "core/base/sort.h"

namespace qwasm {

namespace {

constexpr uint64_t kMostEntries = 1 << 16;   // of metadata, of tensors: Qwen3-235B has 1,131 tensors
constexpr uint64_t kLongestName = 1 << 16;
constexpr uint32_t kMostDimensions = 4;
constexpr int64_t kLargestOffset = int64_t{1} << 53;
constexpr int64_t kMostParts = 9999;
constexpr uint64_t kLongestText = 16 << 20;  // outside arrays: chat templates have some KB
constexpr uint64_t kMostJsonElements = 4096;  // of what becomes JSON: values per layer
constexpr size_t kLongestJsonText = 4096;

// Storage types that quant does not know, to say their names.
struct OtherType {
  int64_t id;
  const char* name;
};
constexpr OtherType kOtherTypes[] = {
    {9, "Q8_1"},   {15, "Q8_K"},   {16, "IQ2_XXS"}, {17, "IQ2_XS"}, {18, "IQ3_XXS"}, {19, "IQ1_S"}, {21, "IQ3_S"}, {22, "IQ2_S"}, {23, "IQ4_XS"},
    {24, "I8"},    {25, "I16"},    {26, "I32"},     {27, "I64"},    {28, "F64"},     {29, "IQ1_M"}, {34, "TQ1_0"}, {35, "TQ2_0"}, {40, "NVFP4"},
};

constexpr uint8_t kTypeBytes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};  // by GgufType; 0: not of one size
constexpr const char* kTypeNames[] = {"uint8", "int8", "uint16", "int16", "uint32", "int32", "float32", "bool", "string", "array", "uint64", "int64", "float64"};

uint64_t read_unsigned(const char* bytes, size_t size) {
  uint64_t value = 0;
  std::memcpy(&value, bytes, size);
  return value;
}

// A name from the file, fit for a sentence.
std::string shown(std::string_view name) { return to_text(Json(std::string(name.substr(0, 200)))); }

std::string describe(const GgufValue& value) {
  if (value.type == GgufType::kArray) return std::string("an array of ") + kTypeNames[static_cast<size_t>(value.element)];
  return std::string("the ") + kTypeNames[static_cast<size_t>(value.type)] + " " + to_text(gguf_json(value)).substr(0, 80);
}

Status wrong(const std::string& where, std::string_view key, const char* expected, const GgufValue& found) {
  return error(Code::kInvalidFile, "%s: %s: expected %s, found %s", where.c_str(), std::string(key).c_str(), expected, describe(found).c_str());
}

bool to_integer(const GgufValue& value, int64_t* out) {
  const size_t size = kTypeBytes[static_cast<size_t>(value.type)];
  if (size == 0 || value.type == GgufType::kF32 || value.type == GgufType::kF64 || value.type == GgufType::kBool) return false;
  const uint64_t bits = read_unsigned(value.bytes.data(), size);
  const bool is_signed = value.type == GgufType::kI8 || value.type == GgufType::kI16 || value.type == GgufType::kI32 || value.type == GgufType::kI64;
  const auto unused = static_cast<int>(64 - 8 * size);
  *out = is_signed ? static_cast<int64_t>(bits << unused) >> unused : static_cast<int64_t>(bits);
  return is_signed || bits <= static_cast<uint64_t>(kLargestOffset);
}

}  // namespace

class GgufReader {
 public:
  GgufReader(std::span<const char> bytes, const std::string& file, int64_t file_size)
      : bytes_(bytes.data(), bytes.size()), file_(file), file_size_(file_size), limit_(file_size >= 0 ? std::min(file_size, kLargestGgufHeader) : kLargestGgufHeader) {}

  Status read(GgufHeader* header) {
    uint64_t tensors = 0, entries = 0;
    QW_TRY(read_beginning(&tensors, &entries));
    for (uint64_t i = 0; i < entries; ++i) QW_TRY(read_entry(&header->metadata));
    QW_TRY(sort_entries(&header->metadata));
    for (uint64_t i = 0; i < tensors; ++i) QW_TRY(read_tensor(header));
    header->bytes = static_cast<int64_t>(at_);
    return place_tensors(header);
  }

  // Bytes from the beginning that reading needs to go on; 0 where it did not stop for them.
  int64_t needed() const { return needed_; }

 private:
  Status cut(const std::string& what, uint64_t wanted) {
    const uint64_t end = wanted > static_cast<uint64_t>(kLargestOffset) ? UINT64_MAX : at_ + wanted;
    if (end <= static_cast<uint64_t>(limit_)) {
      needed_ = static_cast<int64_t>(end);
      return error(Code::kInvalidFile, "%s: the header goes on", file_.c_str());  // replaced by the caller, who brings more
    }
    return error(Code::kInvalidFile, "%s: %s at byte %zu: %llu bytes are claimed, but the %s has %lld (is it cut?)", file_.c_str(), what.c_str(), at_,
                 static_cast<unsigned long long>(wanted), file_size_ >= 0 && file_size_ <= kLargestGgufHeader ? "file" : "largest header",
                 static_cast<long long>(limit_));
  }

  Status take(const std::string& what, uint64_t count, std::string_view* out) {
    if (count > bytes_.size() - at_) return cut(what, count);
    *out = bytes_.substr(at_, static_cast<size_t>(count));
    at_ += static_cast<size_t>(count);
    return {};
  }

  template <typename T>
  Status number(const std::string& what, T* out) {
    std::string_view bytes;
    QW_TRY(take(what, sizeof(T), &bytes));
    *out = static_cast<T>(read_unsigned(bytes.data(), sizeof(T)));
    return {};
  }

  Status string(const std::string& what, uint64_t longest, std::string_view* out) {
    uint64_t length = 0;
    QW_TRY(number(what, &length));
    if (length > longest) {
      return error(Code::kInvalidFile, "%s: %s: expected at most %llu bytes, found a length of %llu", file_.c_str(), what.c_str(),
                   static_cast<unsigned long long>(longest), static_cast<unsigned long long>(length));
    }
    return take(what, length, out);
  }

  Status read_beginning(uint64_t* tensors, uint64_t* entries) {
    std::string_view magic;
    QW_TRY(take("the beginning", 4, &magic));
    if (magic != "GGUF") {
      return error(Code::kInvalidFile, "%s: expected a GGUF file, found one that begins with %s", file_.c_str(), shown(magic).c_str());
    }
    uint32_t version = 0;
    QW_TRY(number("the version", &version));
    if (version != 2 && version != 3) {
      const bool big_endian = version != 0 && (version & 0xffff) == 0;
      return error(Code::kUnsupported, "%s: expected a little-endian GGUF file of version 2 or 3, found %s %u", file_.c_str(),
                   big_endian ? "a big-endian one of version" : "version", big_endian ? version >> 24 : version);
    }
    QW_TRY(count("tensors", tensors));
    return count("metadata entries", entries);
  }

  Status count(const char* what, uint64_t* out) {
    QW_TRY(number(std::string("the count of ") + what, out));
    if (*out <= kMostEntries) return {};
    return error(Code::kInvalidFile, "%s: expected at most %llu %s, found %llu", file_.c_str(), static_cast<unsigned long long>(kMostEntries), what,
                 static_cast<unsigned long long>(*out));
  }

  Status read_type(const std::string& what, GgufType* type) {
    uint32_t id = 0;
    QW_TRY(number(what, &id));
    if (id >= std::size(kTypeBytes)) return error(Code::kInvalidFile, "%s: %s: there is no type %u of metadata", file_.c_str(), what.c_str(), id);
    *type = static_cast<GgufType>(id);
    return {};
  }

  Status read_entry(GgufMetadata* metadata) {
    std::string_view key;
    QW_TRY(string("a metadata key", kLongestName, &key));
    const std::string what = "metadata " + shown(key);
    GgufValue value;
    QW_TRY(read_type(what, &value.type));
    if (value.type == GgufType::kString) {
      QW_TRY(string(what, kLongestText, &value.bytes));
    } else if (value.type == GgufType::kArray) {
      QW_TRY(read_array(what, &value));
    } else {
      QW_TRY(take(what, kTypeBytes[static_cast<size_t>(value.type)], &value.bytes));
    }
    metadata->entries_.emplace_back(key, value);
    return {};
  }

  Status read_array(const std::string& what, GgufValue* value) {
    QW_TRY(read_type(what, &value->element));
    QW_TRY(number(what, &value->count));
    const bool strings = value->element == GgufType::kString;
    const uint64_t least = strings ? 8 : kTypeBytes[static_cast<size_t>(value->element)];
    if (least == 0) return error(Code::kUnsupported, "%s: %s: arrays of arrays are not implemented", file_.c_str(), what.c_str());
    if (value->count > static_cast<uint64_t>(limit_) / least) {
      return error(Code::kInvalidFile, "%s: %s: an array of %llu elements is claimed, for which the file has no room", file_.c_str(), what.c_str(),
                   static_cast<unsigned long long>(value->count));
    }
    if (!strings) return take(what, value->count * least, &value->bytes);
    const size_t begin = at_;
    std::string_view text;
    for (uint64_t i = 0; i < value->count; ++i) QW_TRY(string(what, static_cast<uint64_t>(limit_), &text));
    value->bytes = bytes_.substr(begin, at_ - begin);
    return {};
  }

  Status sort_entries(GgufMetadata* metadata) {
    auto& entries = metadata->entries_;
    using Entry = std::pair<std::string_view, GgufValue>;
    sort_items<Entry>(&entries, [](const Entry& a, const Entry& b) { return a.first < b.first; });
    const auto twin = std::adjacent_find(entries.begin(), entries.end(), [](const auto& a, const auto& b) { return a.first == b.first; });
    return twin == entries.end() ? Status() : error(Code::kInvalidFile, "%s: metadata %s stands twice", file_.c_str(), shown(twin->first).c_str());
  }

  Status read_tensor(GgufHeader* header) {
    std::string_view name;
    QW_TRY(string("a tensor's name", kLongestName, &name));
    const std::string what = "tensor " + shown(name);
    TensorInfo tensor;
    tensor.file = file_;
    uint32_t dimensions = 0, id = 0;
    QW_TRY(number(what, &dimensions));
    if (dimensions < 1 || dimensions > kMostDimensions) {
      return error(Code::kInvalidFile, "%s: %s: expected 1 to %u dimensions, found %u", file_.c_str(), what.c_str(), kMostDimensions, dimensions);
    }
    uint64_t elements = 1, offset = 0;
    for (uint32_t i = 0; i < dimensions; ++i) {
      uint64_t extent = 0;
      QW_TRY(number(what, &extent));
      if (extent == 0 || extent > static_cast<uint64_t>(kLargestOffset / 8) / elements) {
        return error(Code::kInvalidFile, "%s: %s: shape: an extent of %llu is out of bounds", file_.c_str(), what.c_str(), static_cast<unsigned long long>(extent));
      }
      elements *= extent;
      tensor.shape.insert(tensor.shape.begin(), static_cast<int64_t>(extent));
    }
    QW_TRY(number(what, &id));
    QW_TRY(number(what, &offset));
    tensor.format = find_gguf_format(id);
    if (!tensor.format) return refuse_type(what, id);
    if (tensor.shape.back() % tensor.format->elements_per_block != 0) {
      return error(Code::kInvalidFile, "%s: %s: expected rows of a multiple of %d elements in %s, found %lld", file_.c_str(), what.c_str(),
                   tensor.format->elements_per_block, tensor.format->name, static_cast<long long>(tensor.shape.back()));
    }
    if (offset > static_cast<uint64_t>(kLargestOffset)) {
      return error(Code::kInvalidFile, "%s: %s: an offset of %llu is out of bounds", file_.c_str(), what.c_str(), static_cast<unsigned long long>(offset));
    }
    tensor.dtype = tensor.format->name;
    tensor.begin = static_cast<int64_t>(offset);
    tensor.end = tensor.begin + bytes_of(tensor.format->format, static_cast<int64_t>(elements));
    header->tensors.emplace_back(name, std::move(tensor));
    return {};
  }

  Status refuse_type(const std::string& what, uint32_t id) {
    const auto* known = std::find_if(std::begin(kOtherTypes), std::end(kOtherTypes), [&](const OtherType& type) { return type.id == id; });
    const std::string name = known == std::end(kOtherTypes) ? std::to_string(id) : known->name;
    return error(Code::kUnsupported, "%s: %s: qwasm does not read the storage type %s", file_.c_str(), what.c_str(), name.c_str());
  }

  // Offsets count from the end of the header, which is padded; tensors may leave gaps, but share no byte.
  Status place_tensors(GgufHeader* header) {
    int64_t alignment = 32;
    QW_TRY(header->metadata.integer(file_, "general.alignment", &alignment));
    if (alignment < 1 || alignment > 1 << 20 || !std::has_single_bit(static_cast<uint64_t>(alignment))) {
      return error(Code::kInvalidFile, "%s: general.alignment: expected a power of two up to 1048576, found %lld", file_.c_str(), static_cast<long long>(alignment));
    }
    auto& tensors = header->tensors;
    using Tensor = std::pair<std::string, TensorInfo>;
    sort_items<Tensor>(&tensors, [](const Tensor& a, const Tensor& b) { return a.second.begin < b.second.begin; });
    const int64_t data = (header->bytes + alignment - 1) / alignment * alignment;
    int64_t free = 0;
    for (auto& [name, tensor] : tensors) {
      const std::string what = "tensor " + shown(name);
      if (tensor.begin % alignment != 0) {
        return error(Code::kInvalidFile, "%s: %s: expected an offset that is a multiple of %lld, found %lld", file_.c_str(), what.c_str(),
                     static_cast<long long>(alignment), static_cast<long long>(tensor.begin));
      }
      if (tensor.begin < free) {
        return error(Code::kInvalidFile, "%s: %s: overlaps the tensor before it, which ends at %lld; found begin at %lld", file_.c_str(), what.c_str(),
                     static_cast<long long>(free), static_cast<long long>(tensor.begin));
      }
      free = tensor.end;
      tensor.begin += data;
      tensor.end += data;
      if (file_size_ >= 0 && tensor.end > file_size_) {
        return error(Code::kInvalidFile, "%s: %s ends at byte %lld, past the end of the file of %lld bytes (is it cut?)", file_.c_str(), what.c_str(),
                     static_cast<long long>(tensor.end), static_cast<long long>(file_size_));
      }
    }
    return {};
  }

  std::string_view bytes_;
  const std::string& file_;
  int64_t file_size_, limit_;
  size_t at_ = 0;
  int64_t needed_ = 0;
};

const GgufValue* GgufMetadata::find(std::string_view key) const {
  const auto found = std::lower_bound(entries_.begin(), entries_.end(), key, [](const auto& entry, std::string_view k) { return entry.first < k; });
  return found != entries_.end() && found->first == key ? &found->second : nullptr;
}

Status GgufMetadata::text(const std::string& where, std::string_view key, std::string_view* out) const {
  const GgufValue* value = find(key);
  if (!value) return {};
  if (value->type != GgufType::kString) return wrong(where, key, "a string", *value);
  *out = value->bytes;
  return {};
}

Status GgufMetadata::integer(const std::string& where, std::string_view key, int64_t* out) const {
  const GgufValue* value = find(key);
  return !value || to_integer(*value, out) ? Status() : wrong(where, key, "a whole number below 2^53", *value);
}

Status GgufMetadata::boolean(const std::string& where, std::string_view key, bool* out) const {
  const GgufValue* value = find(key);
  if (!value) return {};
  if (value->type != GgufType::kBool) return wrong(where, key, "a bool", *value);
  *out = value->bytes[0] != 0;
  return {};
}

Status GgufMetadata::strings(const std::string& where, std::string_view key, PackedStrings* out) const {
  const GgufValue* value = find(key);
  if (!value) return {};
  if (value->type != GgufType::kArray || value->element != GgufType::kString) return wrong(where, key, "an array of strings", *value);
  *out = {value->count, value->bytes};
  return {};
}

Json gguf_json(const GgufValue& value) {
  int64_t whole = 0;
  if (to_integer(value, &whole)) return whole;
  switch (value.type) {
    case GgufType::kString: return std::string(value.bytes.substr(0, kLongestJsonText));
    case GgufType::kBool: return value.bytes[0] != 0;
    case GgufType::kF32: return static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(read_unsigned(value.bytes.data(), 4))));
    case GgufType::kF64: return std::bit_cast<double>(read_unsigned(value.bytes.data(), 8));
    case GgufType::kArray: break;
    default: return read_unsigned(value.bytes.data(), 8);  // a uint64 past 2^53
  }
  if (value.count > kMostJsonElements) return "an array of " + std::to_string(value.count) + " elements";
  Json array = Json::array();
  PackedStrings strings{value.count, value.bytes};
  const size_t size = kTypeBytes[static_cast<size_t>(value.element)];
  for (uint64_t i = 0; i < value.count; ++i) {
    array.push_back(size == 0 ? Json(std::string(strings.next().substr(0, kLongestJsonText))) : gguf_json({value.element, {}, 0, value.bytes.substr(static_cast<size_t>(i) * size, size)}));
  }
  return array;
}

Status parse_gguf_header(std::span<const char> bytes, const std::string& file, int64_t file_size, GgufHeader* header, int64_t* needed) {
  GgufReader reader(bytes, file, file_size);
  GgufHeader found;
  const Status status = reader.read(&found);
  *needed = reader.needed();
  if (*needed > 0) return {};
  QW_TRY(status);
  *header = std::move(found);
  return {};
}

Status read_gguf_split(const GgufMetadata& metadata, const std::string& file, GgufSplit* split) {
  QW_TRY(metadata.integer(file, "split.count", &split->count));
  QW_TRY(metadata.integer(file, "split.no", &split->number));
  QW_TRY(metadata.integer(file, "split.tensors.count", &split->tensors));
  if (split->count == 0) split->count = 1;
  if (split->count < 1 || split->count > kMostParts || split->number < 0 || split->number >= split->count) {
    return error(Code::kInvalidFile, "%s: split.no, split.count: expected a part below a count of at most %lld, found %lld of %lld", file.c_str(),
                 static_cast<long long>(kMostParts), static_cast<long long>(split->number), static_cast<long long>(split->count));
  }
  return {};
}

std::string gguf_part_name(const std::string& file, int64_t number, int64_t count) {
  constexpr size_t kSuffix = sizeof("-00001-of-00003.gguf") - 1;
  if (file.size() < kSuffix) return {};
  const std::string stem = file.substr(0, file.size() - kSuffix);
  const auto suffix = [&](int64_t n) {
    char text[kSuffix + 16];
    std::snprintf(text, sizeof text, "-%05d-of-%05d.gguf", static_cast<int>(n + 1), static_cast<int>(count));
    return std::string(text);
  };
  for (int64_t n = 0; n < count; ++n) {
    if (file.ends_with(suffix(n))) return stem + suffix(number);
  }
  return {};
}

}  // namespace qwasm
