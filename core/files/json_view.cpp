// Typed access to the fields of JSON files.
#include "core/files/json_view.h"

#include <algorithm>
#include <cmath>

namespace qwasm {

namespace {

constexpr double kLargestWhole = 9007199254740992;  // 2^53

// The first bytes of a file, fit for a sentence.
std::string beginning(std::span<const char> bytes) {
  std::string text;
  for (const char c : bytes.first(std::min<size_t>(bytes.size(), 32))) text += c >= 0x20 && c < 0x7f ? c : ' ';
  return text;
}

bool to_whole(const Json& value, int64_t* out) {
  if (value.is_number_unsigned()) {
    const uint64_t v = *value.get_ptr<const Json::number_unsigned_t*>();
    *out = static_cast<int64_t>(v);
    return v <= static_cast<uint64_t>(kLargestWhole);
  }
  if (value.is_number_integer()) {
    *out = *value.get_ptr<const Json::number_integer_t*>();
    return true;
  }
  if (!value.is_number_float()) return false;
  const double v = *value.get_ptr<const Json::number_float_t*>();
  if (!(std::fabs(v) <= kLargestWhole) || v != std::floor(v)) return false;
  *out = static_cast<int64_t>(v);
  return true;
}

bool to_double(const Json& value, double* out) {
  if (value.is_number_unsigned()) {
    *out = static_cast<double>(*value.get_ptr<const Json::number_unsigned_t*>());
  } else if (value.is_number_integer()) {
    *out = static_cast<double>(*value.get_ptr<const Json::number_integer_t*>());
  } else if (value.is_number_float()) {
    *out = *value.get_ptr<const Json::number_float_t*>();
  } else {
    return false;
  }
  return true;
}

std::string short_number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.15g", value);
  return text;
}

std::string whole_range(int64_t smallest, int64_t largest) {
  return "a whole number from " + std::to_string(smallest) + " to " + std::to_string(largest);
}

}  // namespace

Status parse_json_object(std::span<const char> bytes, const std::string& file, Json* object) {
  // What Json::parse does, without its second parser for callbacks.
  auto input = nlohmann::detail::input_adapter(bytes.data(), bytes.data() + bytes.size());
  nlohmann::detail::json_sax_dom_parser<Json> builder(*object, /*allow_exceptions=*/false);
  nlohmann::detail::parser<Json, decltype(input)>(std::move(input)).sax_parse(&builder);
  if (builder.is_errored()) *object = Json(Json::value_t::discarded);
  if (object->is_object()) return {};
  if (!object->is_discarded()) {
    return error(Code::kInvalidFile, "%s: expected a JSON object, found %s", file.c_str(), describe(*object).c_str());
  }
  return error(Code::kInvalidFile, "%s: expected a JSON object, found %zu bytes that are not JSON and begin with \"%s\"", file.c_str(),
               bytes.size(), beginning(bytes).c_str());
}

std::string describe(const Json& value) {
  switch (value.type()) {
    case Json::value_t::null: return "null";
    case Json::value_t::object: return "an object";
    case Json::value_t::array: return "an array";
    case Json::value_t::string: {
      const std::string& text = *value.get_ptr<const std::string*>();
      return "the string " + to_text(Json(text.size() <= 80 ? text : text.substr(0, 80) + "…"));
    }
    case Json::value_t::boolean:
    case Json::value_t::number_integer:
    case Json::value_t::number_unsigned:
    case Json::value_t::number_float: return to_text(value);
    default: return "something else";
  }
}

std::string to_text(const Json& value) { return value.dump(-1, ' ', false, Json::error_handler_t::replace); }

const Json* Fields::find(const char* name) const {
  const auto found = object_.find(name);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

Json numbers_object(std::initializer_list<std::pair<const char*, int64_t>> fields) {
  Json object = Json::object();
  for (const auto& [name, value] : fields) object[name] = value;
  return object;
}

Status Fields::missing(const char* name, Presence presence) const {
  if (presence == Presence::kOptional) return {};
  return error(Code::kMissing, "%s: %s is missing", where_.c_str(), name);
}

Status Fields::wrong(const char* name, const std::string& expected, const Json& found) const {
  return error(Code::kInvalidFile, "%s: %s: expected %s, found %s", where_.c_str(), name, expected.c_str(), describe(found).c_str());
}

Status Fields::integer(const char* name, int64_t smallest, int64_t largest, Presence presence, int64_t* out) const {
  const Json* value = find(name);
  if (!value) return missing(name, presence);
  int64_t whole = 0;
  if (!to_whole(*value, &whole) || whole < smallest || whole > largest) return wrong(name, whole_range(smallest, largest), *value);
  *out = whole;
  return {};
}

Status Fields::number(const char* name, double smallest, double largest, Presence presence, double* out) const {
  const Json* value = find(name);
  if (!value) return missing(name, presence);
  double found = 0;
  if (!to_double(*value, &found) || !(found >= smallest && found <= largest)) {
    return wrong(name, "a number from " + short_number(smallest) + " to " + short_number(largest), *value);
  }
  *out = found;
  return {};
}

Status Fields::boolean(const char* name, Presence presence, bool* out) const {
  const Json* value = find(name);
  if (!value) return missing(name, presence);
  if (!value->is_boolean()) return wrong(name, "true or false", *value);
  *out = *value->get_ptr<const Json::boolean_t*>();
  return {};
}

Status Fields::text(const char* name, Presence presence, std::string* out) const {
  const Json* value = find(name);
  if (!value) return missing(name, presence);
  if (!value->is_string()) return wrong(name, "a string", *value);
  *out = *value->get_ptr<const Json::string_t*>();
  return {};
}

Status Fields::object(const char* name, Presence presence, const Json** out) const {
  const Json* value = find(name);
  if (!value) return missing(name, presence);
  if (!value->is_object()) return wrong(name, "an object", *value);
  *out = value;
  return {};
}

Status Fields::integers(const char* name, int64_t smallest, int64_t largest, Presence presence, std::vector<int64_t>* out) const {
  const Json* value = find(name);
  if (!value) return missing(name, presence);
  std::vector<int64_t> numbers;
  const auto append = [&](const Json& element) {
    int64_t whole = 0;
    if (!to_whole(element, &whole) || whole < smallest || whole > largest) return false;
    numbers.push_back(whole);
    return true;
  };
  const bool good = value->is_array() ? std::all_of(value->begin(), value->end(), append) : append(*value);
  if (!good) return wrong(name, whole_range(smallest, largest) + ", or an array of them", *value);
  *out = std::move(numbers);
  return {};
}

Status Fields::only(std::initializer_list<const char*> names) const {
  for (auto field = object_.begin(); field != object_.end(); ++field) {
    const auto same = [&](const char* name) { return field.key() == name; };
    if (std::none_of(names.begin(), names.end(), same)) {
      return error(Code::kInvalidFile, "%s: %s is not known here", where_.c_str(), to_text(Json(field.key())).c_str());
    }
  }
  return {};
}

}  // namespace qwasm
