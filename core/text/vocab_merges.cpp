// Reads the tokenizer of older folders: vocab.json, merges.txt and tokenizer_config.json.
#include <charconv>

#include "core/text/json_tree.h"
#include "core/text/quote.h"
#include "core/text/tokenizer.h"
#include "core/text/tokenizer_builder.h"
#include "core/text/tokenizer_fields.h"

namespace qwasm {
namespace {

constexpr const char* kVocab = "vocab.json";
constexpr const char* kMerges = "merges.txt";
constexpr const char* kConfig = "tokenizer_config.json";
using Kind = JsonNode::Kind;

class VocabBulk final : public JsonBulk {
 public:
  explicit VocabBulk(TokenizerBuilder* builder) : builder_(builder) {}

  bool takes(std::string_view path, Kind kind) override { return path.empty() && kind == Kind::kObject; }

  Status child(std::string_view, const JsonNode& node) override {
    if (node.is(Kind::kInteger)) return builder_->add_token(node.integer, node.key);
    return error(Code::kInvalidFile, "%s: the id of %s is %s; expected an integer", kVocab, quote(node.key).c_str(),
                 node.describe().c_str());
  }

 private:
  TokenizerBuilder* builder_;
};

Status read_vocab(std::span<const char> bytes, TokenizerBuilder* builder) {
  VocabBulk bulk(builder);
  JsonNode root;
  QW_TRY(parse_json_tree(kVocab, bytes, &bulk, &root));
  if (root.is(Kind::kObject)) return {};
  return error(Code::kInvalidFile, "%s: is %s; expected an object of ids", kVocab, root.describe().c_str());
}

// One merge a line; the first line may state a version, and empty lines do not count.
Status read_merges(std::span<const char> bytes, TokenizerBuilder* builder) {
  std::string_view rest(bytes.data(), bytes.size());
  if (find_invalid_utf8(rest) != std::string_view::npos) {
    return error(Code::kInvalidFile, "%s: not UTF-8 at byte %zu", kMerges, find_invalid_utf8(rest));
  }
  if (rest.starts_with("#version")) rest.remove_prefix(std::min(rest.find('\n'), rest.size()));
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!line.empty()) QW_TRY(builder->add_merge(line));
  }
  return {};
}

Status read_class(const JsonNode& config) {
  const JsonNode* name = config.find("tokenizer_class");
  if (name == nullptr || name->is(Kind::kNull)) return {};
  if (!name->is(Kind::kString)) {
    return error(Code::kInvalidFile, "%s: tokenizer_class is %s; expected a string", kConfig, name->describe().c_str());
  }
  if (name->text == "Qwen2Tokenizer" || name->text == "Qwen2TokenizerFast") return {};
  return error(Code::kUnsupported,
               "%s: tokenizer_class %s is not implemented without a tokenizer.json; expected Qwen2Tokenizer", kConfig,
               quote(name->text).c_str());
}

Status read_added_tokens(const JsonNode& config, TokenizerBuilder* builder) {
  const JsonNode* tokens = config.find("added_tokens_decoder");
  if (tokens == nullptr || tokens->is(Kind::kNull)) return {};
  if (!tokens->is(Kind::kObject)) {
    return error(Code::kInvalidFile, "%s: added_tokens_decoder is %s; expected an object", kConfig,
                 tokens->describe().c_str());
  }
  for (const JsonNode& item : tokens->items) {
    int64_t id = 0;
    const char* const end = item.key.data() + item.key.size();
    const auto parsed = std::from_chars(item.key.data(), end, id);
    if (parsed.ec != std::errc() || parsed.ptr != end) {
      return error(Code::kInvalidFile, "%s: added_tokens_decoder has the key %s; expected an id", kConfig,
                   quote(item.key).c_str());
    }
    AddedToken token;
    QW_TRY(read_added_token(kConfig, item, &token));
    QW_TRY(builder->add_added_token(id, std::move(token)));
  }
  return {};
}

Status read_config(std::span<const char> bytes, TokenizerBuilder* builder) {
  JsonNode config;
  QW_TRY(parse_json_tree(kConfig, bytes, nullptr, &config));
  if (!config.is(Kind::kObject)) {
    return error(Code::kInvalidFile, "%s: is %s; expected an object", kConfig, config.describe().c_str());
  }
  QW_TRY(read_class(config));
  for (const char* name : {"add_prefix_space", "split_special_tokens"}) {
    bool value = false;
    QW_TRY(read_flag(kConfig, config, name, &value));
    if (value) return error(Code::kUnsupported, "%s: %s true is not implemented", kConfig, name);
  }
  return read_added_tokens(config, builder);
}

}  // namespace

Status Tokenizer::from_vocab_and_merges(std::span<const char> vocab_json, std::span<const char> merges_txt,
                                        std::span<const char> tokenizer_config_json, std::unique_ptr<Tokenizer>* out) {
  TokenizerBuilder builder(kVocab, kMerges);
  QW_TRY(read_vocab(vocab_json, &builder));
  QW_TRY(read_merges(merges_txt, &builder));
  if (!tokenizer_config_json.empty()) QW_TRY(read_config(tokenizer_config_json, &builder));
  QW_TRY(builder.set_pattern(kVocab, kQwen2Pattern));
  builder.set_nfc(true);
  return builder.finish(out);
}

}  // namespace qwasm
