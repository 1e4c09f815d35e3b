// JSON from files, read without exceptions: parsing to a DOM, and typed, bounded access to fields that says what it found instead.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "core/base/status.h"

namespace qwasm {

using Json = nlohmann::json;

// Parses `bytes` as a JSON object. `file` begins the error sentence.
Status parse_json_object(std::span<const char> bytes, const std::string& file, Json* object);

// What a value is, for error sentences: `the string "abc"`, `-3`, `an array`.
std::string describe(const Json& value);

// Text of a JSON value; bytes that are not UTF-8 are replaced.
std::string to_text(const Json& value);

// An object of numbers: one list of JSON values for each would cost 100 bytes of code a field.
Json numbers_object(std::initializer_list<std::pair<const char*, int64_t>> fields);

enum class Presence { kRequired, kOptional };

// The fields of one JSON object. An optional field that is absent or null leaves *out as it is.
class Fields {
 public:
  // `where` begins each error sentence: "config.json" or "config.json: rope_parameters".
  Fields(const Json& object, std::string where) : object_(object), where_(std::move(where)) {}

  // The value, or null where the field is absent or null.
  const Json* find(const char* name) const;

  Status integer(const char* name, int64_t smallest, int64_t largest, Presence presence, int64_t* out) const;
  Status number(const char* name, double smallest, double largest, Presence presence, double* out) const;
  Status boolean(const char* name, Presence presence, bool* out) const;
  Status text(const char* name, Presence presence, std::string* out) const;
  Status object(const char* name, Presence presence, const Json** out) const;
  // One whole number or an array of them.
  Status integers(const char* name, int64_t smallest, int64_t largest, Presence presence, std::vector<int64_t>* out) const;
  // Fails if there is a field that is not among `names`.
  Status only(std::initializer_list<const char*> names) const;

  const std::string& where() const { return where_; }

 private:
  Status missing(const char* name, Presence presence) const;
  Status wrong(const char* name, const std::string& expected, const Json& found) const;

  const Json& object_;
  std::string where_;
};

}  // namespace qwasm
