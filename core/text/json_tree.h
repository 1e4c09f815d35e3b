// JSON as a small tree, except for the containers whose hundreds of thousands of children are handed over one by one.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"

namespace qwasm {

struct JsonNode {
  enum class Kind : uint8_t { kNull, kBool, kInteger, kFloat, kString, kArray, kObject };

  Kind kind = Kind::kNull;
  bool boolean = false;
  int64_t integer = 0;
  std::string key;   // its name, inside an object
  std::string text;  // of a string
  std::vector<JsonNode> items;

  bool is(Kind wanted) const { return kind == wanted; }
  const JsonNode* find(std::string_view name) const;  // nullptr where absent or not in an object
  std::string describe() const;                       // for sentences: its kind, and its value where that is short
};

// Takes the children of large containers.
class JsonBulk {
 public:
  virtual ~JsonBulk() = default;
  // Whether the children of the container at `path` ("" for the root, "model.vocab") go to `child` instead of into the
  // tree.
  virtual bool takes(std::string_view path, JsonNode::Kind kind) = 0;
  // `path`: the container's.
  virtual Status child(std::string_view path, const JsonNode& node) = 0;
};

// Reads the JSON text `bytes` into `root`. `file` begins every sentence. `bulk` may be null. Strict: a key that stands
// twice, more than 64 levels or more than 400,000 values in the tree are kInvalidFile like bad syntax.
Status parse_json_tree(const char* file, std::span<const char> bytes, JsonBulk* bulk, JsonNode* root);

}  // namespace qwasm
