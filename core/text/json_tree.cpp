// The bridge from nlohmann's SAX events to JsonNode: see json_tree.h.
#include "core/text/json_tree.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/base/sort.h"
#include "core/text/quote.h"

namespace qwasm {
namespace {

constexpr size_t kMaxDepth = 64;
constexpr size_t kMaxNodes = 400'000;  // about 50 MB
constexpr size_t kMaxBytes = size_t{1} << 30;

using Kind = JsonNode::Kind;

class TreeBuilder final : public nlohmann::json_sax<nlohmann::json> {
 public:
  TreeBuilder(const char* file, JsonBulk* bulk, JsonNode* root) : file_(file), bulk_(bulk), root_(root) {}

  const Status& status() const { return status_; }

  bool null() override { return scalar(Kind::kNull); }
  bool boolean(bool value) override { return scalar(Kind::kBool, value); }
  bool number_integer(number_integer_t value) override { return scalar(Kind::kInteger, false, value); }
  bool number_unsigned(number_unsigned_t value) override {
    if (value > INT64_MAX) return scalar(Kind::kFloat);
    return scalar(Kind::kInteger, false, static_cast<int64_t>(value));
  }
  bool number_float(number_float_t, const string_t&) override { return scalar(Kind::kFloat); }
  bool string(string_t& value) override {
    JsonNode* node = add(Kind::kString);
    if (node == nullptr) return false;
    node->text.swap(value);
    return close(node);
  }
  bool binary(binary_t&) override { return fail("holds binary data"); }
  bool key(string_t& name) override {
    key_.swap(name);
    return true;
  }
  bool start_object(size_t) override { return open(Kind::kObject); }
  bool start_array(size_t) override { return open(Kind::kArray); }
  bool end_object() override { return end(); }
  bool end_array() override { return end(); }
  bool parse_error(size_t position, const std::string&, const nlohmann::detail::exception&) override {
    status_ = error(Code::kInvalidFile, "%s: not valid JSON at byte %zu", file_, position);
    return false;
  }

 private:
  bool fail(const char* what) {
    status_ = error(Code::kInvalidFile, "%s: %s", file_, what);
    return false;
  }

  JsonNode* add(Kind kind) {
    if (++count_ > kMaxNodes) {
      fail("holds more than 400000 values outside its vocabulary and merges");
      return nullptr;
    }
    JsonNode* node = root_;
    if (!open_.empty()) node = &open_.back()->items.emplace_back();
    node->kind = kind;
    node->key.swap(key_);
    key_.clear();
    return node;
  }

  bool scalar(Kind kind, bool boolean = false, int64_t integer = 0) {
    JsonNode* node = add(kind);
    if (node == nullptr) return false;
    node->boolean = boolean;
    node->integer = integer;
    return close(node);
  }

  bool open(Kind kind) {
    if (open_.size() == kMaxDepth) return fail("is nested more than 64 levels deep");
    JsonNode* node = add(kind);
    if (node == nullptr) return false;
    open_.push_back(node);
    if (bulk_ == nullptr || bulk_depth_ != 0) return true;
    std::string path;
    for (size_t i = 1; i < open_.size(); ++i) path += (i > 1 ? "." : "") + open_[i]->key;
    if (bulk_->takes(path, kind)) {
      bulk_depth_ = open_.size();
      bulk_path_ = std::move(path);
    }
    return true;
  }

  bool end() {
    JsonNode* node = open_.back();
    if (node->is(Kind::kObject) && !has_distinct_keys(*node)) return false;
    if (bulk_depth_ == open_.size()) bulk_depth_ = 0;
    open_.pop_back();
    return close(node);
  }

  // Every value ends here; a child of a bulk container is passed on and forgotten.
  bool close(JsonNode* node) {
    if (bulk_depth_ == 0 || bulk_depth_ != open_.size()) return true;
    status_ = bulk_->child(bulk_path_, *node);
    open_.back()->items.clear();
    count_ = 0;
    return status_.ok();
  }

  bool has_distinct_keys(const JsonNode& node) {
    std::vector<std::string_view> keys;
    for (const JsonNode& item : node.items) keys.push_back(item.key);
    sort_items<std::string_view>(&keys, [](const std::string_view& a, const std::string_view& b) { return a < b; });
    const auto twice = std::adjacent_find(keys.begin(), keys.end());
    if (twice == keys.end()) return true;
    status_ = error(Code::kInvalidFile, "%s: the key %s stands twice in one object", file_, quote(*twice).c_str());
    return false;
  }

  const char* file_;
  JsonBulk* bulk_;
  JsonNode* root_;
  // Containers that are not closed yet. Only the last item of each can be open, so the addresses stay.
  std::vector<JsonNode*> open_;
  size_t bulk_depth_ = 0;  // size of open_ inside the bulk container; 0 outside
  std::string bulk_path_;
  std::string key_;
  size_t count_ = 0;
  Status status_;
};

}  // namespace

const JsonNode* JsonNode::find(std::string_view name) const {
  if (kind != Kind::kObject) return nullptr;
  const auto found = std::find_if(items.begin(), items.end(), [&](const JsonNode& item) { return item.key == name; });
  return found == items.end() ? nullptr : &*found;
}

std::string JsonNode::describe() const {
  switch (kind) {
    case Kind::kNull: return "null";
    case Kind::kBool: return boolean ? "true" : "false";
    case Kind::kInteger: return std::to_string(integer);
    case Kind::kFloat: return "a number that is not a 64-bit integer";
    case Kind::kString: return quote(text);
    case Kind::kArray: return "an array";
    case Kind::kObject: return "an object";
  }
  return {};
}

Status parse_json_tree(const char* file, std::span<const char> bytes, JsonBulk* bulk, JsonNode* root) {
  if (bytes.size() > kMaxBytes)
    return error(Code::kInvalidFile, "%s: has %zu bytes; expected at most %zu", file, bytes.size(), kMaxBytes);
  *root = {};
  TreeBuilder builder(file, bulk, root);
  // By the base class: every reader of the core that does the same shares one copy of the parser's code.
  nlohmann::json_sax<nlohmann::json>* sax = &builder;
  // Not by json::sax_parse, which brings the readers of CBOR, BSON and their like with it: 22 KB.
  auto input = nlohmann::detail::input_adapter(bytes.data(), bytes.data() + bytes.size());
  const bool complete = nlohmann::detail::parser<nlohmann::json, decltype(input)>(std::move(input)).sax_parse(sax);
  if (!complete && builder.status().ok()) return error(Code::kInvalidFile, "%s: not valid JSON", file);
  return builder.status();
}

}  // namespace qwasm
