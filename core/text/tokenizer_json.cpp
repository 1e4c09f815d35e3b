// Reads tokenizer.json. Every part that would change ids is either what the core does or refused by its name.
#include <string>

#include "core/text/json_tree.h"
#include "core/text/quote.h"
#include "core/text/tokenizer.h"
#include "core/text/tokenizer_builder.h"
#include "core/text/tokenizer_fields.h"

namespace qwasm {
namespace {

constexpr const char* kFile = "tokenizer.json";
using Kind = JsonNode::Kind;

// Sends model.vocab and model.merges to the builder as they are read.
class ModelBulk final : public JsonBulk {
 public:
  explicit ModelBulk(TokenizerBuilder* builder) : builder_(builder) {}

  bool takes(std::string_view path, Kind kind) override {
    const bool is_vocab = path == "model.vocab";
    if (!is_vocab && path != "model.merges") return false;
    wrong_kind_ = kind != (is_vocab ? Kind::kObject : Kind::kArray);
    return true;
  }

  Status child(std::string_view path, const JsonNode& node) override {
    if (wrong_kind_) return {};  // read_model says so, after it has seen the model's type
    return path == "model.vocab" ? vocab_entry(node) : merge(node);
  }

 private:
  Status vocab_entry(const JsonNode& node) {
    if (node.is(Kind::kInteger)) return builder_->add_token(node.integer, node.key);
    return error(Code::kInvalidFile, "%s: model.vocab: the id of %s is %s; expected an integer", kFile,
                 quote(node.key).c_str(), node.describe().c_str());
  }

  Status merge(const JsonNode& node) {
    if (node.is(Kind::kString)) return builder_->add_merge(node.text);
    if (node.is(Kind::kArray) && node.items.size() == 2 && node.items[0].is(Kind::kString) &&
        node.items[1].is(Kind::kString)) {
      return builder_->add_merge(node.items[0].text, node.items[1].text);
    }
    return error(Code::kInvalidFile, "%s: model.merges: found %s; expected \"left right\" or [\"left\", \"right\"]",
                 kFile, node.describe().c_str());
  }

  TokenizerBuilder* builder_;
  bool wrong_kind_ = false;
};

Status unsupported(const char* what, const JsonNode& found, const char* expected) {
  return error(Code::kUnsupported, "%s: %s %s is not implemented; expected %s", kFile, what, found.describe().c_str(),
               expected);
}

// The "type" of a part such as the normalizer.
Status read_type(const JsonNode& part, const char* name, std::string* type) {
  const JsonNode* node = part.find("type");
  if (node == nullptr || !node->is(Kind::kString)) {
    return error(Code::kInvalidFile, "%s: %s is %s; expected an object with a \"type\"", kFile, name,
                 part.describe().c_str());
  }
  *type = node->text;
  return {};
}

bool is_absent(const JsonNode* node) { return node == nullptr || node->is(Kind::kNull); }

Status read_normalizer(const JsonNode& root, TokenizerBuilder* builder) {
  const JsonNode* normalizer = root.find("normalizer");
  if (is_absent(normalizer)) return {};
  std::string type;
  QW_TRY(read_type(*normalizer, "normalizer", &type));
  if (type != "NFC") return unsupported("normalizer", *normalizer->find("type"), "NFC or none");
  builder->set_nfc(true);
  return {};
}

Status read_split(const JsonNode& split, TokenizerBuilder* builder) {
  const JsonNode* pattern = split.find("pattern");
  if (pattern == nullptr || !pattern->is(Kind::kObject)) {
    return error(Code::kInvalidFile, "%s: pre_tokenizer Split has no pattern", kFile);
  }
  const JsonNode* regex = pattern->find("Regex");
  if (regex == nullptr || !regex->is(Kind::kString)) {
    const JsonNode* literal = pattern->find("String");
    return unsupported("pre_tokenizer Split with the pattern", literal != nullptr ? *literal : *pattern, "a \"Regex\"");
  }
  QW_TRY(builder->set_pattern(kFile, regex->text));
  const JsonNode* behavior = split.find("behavior");
  if (behavior == nullptr || !behavior->is(Kind::kString)) {
    return error(Code::kInvalidFile, "%s: pre_tokenizer Split has no behavior", kFile);
  }
  if (behavior->text != "Isolated")
    return unsupported("pre_tokenizer Split with the behavior", *behavior, "\"Isolated\"");
  bool invert = false;
  QW_TRY(read_flag(kFile, split, "invert", &invert));
  if (invert) return unsupported("pre_tokenizer Split with invert", *split.find("invert"), "false");
  return {};
}

Status read_byte_level(const JsonNode& byte_level) {
  for (const char* name : {"add_prefix_space", "use_regex"}) {
    bool value = true;  // what an absent one means
    QW_TRY(read_flag(kFile, byte_level, name, &value));
    if (value) {
      return error(Code::kUnsupported, "%s: pre_tokenizer ByteLevel with %s true is not implemented; expected false",
                   kFile, name);
    }
  }
  return {};
}

Status read_pre_tokenizer(const JsonNode& root, TokenizerBuilder* builder) {
  const JsonNode* part = root.find("pre_tokenizer");
  if (is_absent(part)) {
    return error(Code::kUnsupported,
                 "%s: pre_tokenizer null is not implemented; expected a Sequence of Split and ByteLevel", kFile);
  }
  std::string type;
  QW_TRY(read_type(*part, "pre_tokenizer", &type));
  const char* const expected = "a Sequence of Split and ByteLevel";
  if (type != "Sequence") return unsupported("pre_tokenizer", *part->find("type"), expected);
  const JsonNode* steps = part->find("pretokenizers");
  if (steps == nullptr || !steps->is(Kind::kArray)) {
    return error(Code::kInvalidFile, "%s: pre_tokenizer Sequence has no array \"pretokenizers\"", kFile);
  }
  const char* const types[] = {"Split", "ByteLevel"};
  for (size_t i = 0; i < steps->items.size(); ++i) {
    QW_TRY(read_type(steps->items[i], "a step of pre_tokenizer", &type));
    if (i >= 2 || type != types[i]) return unsupported("pre_tokenizer step", *steps->items[i].find("type"), expected);
  }
  if (steps->items.size() != 2) {
    return error(Code::kUnsupported, "%s: pre_tokenizer Sequence of %zu steps is not implemented; expected %s", kFile,
                 steps->items.size(), expected);
  }
  QW_TRY(read_split(steps->items[0], builder));
  return read_byte_level(steps->items[1]);
}

Status read_decoder(const JsonNode& root) {
  const JsonNode* decoder = root.find("decoder");
  if (is_absent(decoder)) return {};
  std::string type;
  QW_TRY(read_type(*decoder, "decoder", &type));
  if (type != "ByteLevel") return unsupported("decoder", *decoder->find("type"), "ByteLevel or none");
  return {};
}

// An option of the model that changes ids unless it is null, false, zero or "".
Status refuse_option(const JsonNode& model, const char* name) {
  const JsonNode* node = model.find(name);
  const bool off = is_absent(node) || (node->is(Kind::kBool) && !node->boolean) ||
                   (node->is(Kind::kString) && node->text.empty()) || (node->is(Kind::kInteger) && node->integer == 0);
  if (off) return {};
  return error(Code::kUnsupported, "%s: model.%s is %s, which is not implemented", kFile, name,
               node->describe().c_str());
}

Status read_model(const JsonNode& root, TokenizerBuilder* builder) {
  const JsonNode* model = root.find("model");
  if (model == nullptr || !model->is(Kind::kObject))
    return error(Code::kInvalidFile, "%s: has no object \"model\"", kFile);
  if (const JsonNode* type = model->find("type"); !is_absent(type)) {
    if (!type->is(Kind::kString))
      return error(Code::kInvalidFile, "%s: model.type is %s; expected a string", kFile, type->describe().c_str());
    if (type->text != "BPE") return unsupported("model type", *type, "BPE");
  }
  const JsonNode* vocab = model->find("vocab");
  if (vocab == nullptr || !vocab->is(Kind::kObject)) {
    return error(Code::kInvalidFile, "%s: model.vocab is not an object of ids", kFile);
  }
  const JsonNode* merges = model->find("merges");
  if (merges == nullptr || !merges->is(Kind::kArray))
    return error(Code::kInvalidFile, "%s: model.merges is not an array", kFile);
  for (const char* name : {"dropout", "continuing_subword_prefix", "end_of_word_suffix", "ignore_merges"}) {
    QW_TRY(refuse_option(*model, name));
  }
  for (const char* name : {"unk_token", "byte_fallback"}) {
    if (!refuse_option(*model, name).ok()) builder->set_unknown_option(name);
  }
  return {};
}

Status read_added_tokens(const JsonNode& root, TokenizerBuilder* builder) {
  const JsonNode* list = root.find("added_tokens");
  if (is_absent(list)) return {};
  if (!list->is(Kind::kArray))
    return error(Code::kInvalidFile, "%s: added_tokens is %s; expected an array", kFile, list->describe().c_str());
  for (const JsonNode& item : list->items) {
    const JsonNode* id = item.find("id");
    if (id == nullptr || !id->is(Kind::kInteger)) {
      return error(Code::kInvalidFile, "%s: added_tokens: an entry's id is %s; expected an integer", kFile,
                   id == nullptr ? "missing" : id->describe().c_str());
    }
    AddedToken token;
    QW_TRY(read_added_token(kFile, item, &token));
    QW_TRY(builder->add_added_token(id->integer, std::move(token)));
  }
  return {};
}

}  // namespace

Status Tokenizer::from_json(std::span<const char> json, std::unique_ptr<Tokenizer>* out) {
  TokenizerBuilder builder(kFile, kFile);
  ModelBulk bulk(&builder);
  JsonNode root;
  QW_TRY(parse_json_tree(kFile, json, &bulk, &root));
  if (!root.is(Kind::kObject))
    return error(Code::kInvalidFile, "%s: is %s; expected an object", kFile, root.describe().c_str());
  QW_TRY(read_model(root, &builder));
  QW_TRY(read_normalizer(root, &builder));
  QW_TRY(read_pre_tokenizer(root, &builder));
  QW_TRY(read_decoder(root));
  QW_TRY(read_added_tokens(root, &builder));
  return builder.finish(out);
}

}  // namespace qwasm
