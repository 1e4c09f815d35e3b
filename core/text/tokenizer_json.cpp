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

// *use_regex: whether it cuts by GPT-2's pattern.
Status read_byte_level(const JsonNode& byte_level, bool* use_regex) {
  bool add_prefix_space = true;  // what an absent one means, of both
  *use_regex = true;
  QW_TRY(read_flag(kFile, byte_level, "add_prefix_space", &add_prefix_space));
  QW_TRY(read_flag(kFile, byte_level, "use_regex", use_regex));
  if (!add_prefix_space) return {};
  return error(Code::kUnsupported, "%s: pre_tokenizer ByteLevel with add_prefix_space true is not implemented; expected false", kFile);
}

Status read_digits(const JsonNode& digits) {
  bool individual = false;
  QW_TRY(read_flag(kFile, digits, "individual_digits", &individual));
  if (individual) return {};
  return error(Code::kUnsupported, "%s: pre_tokenizer Digits with individual_digits false is not implemented; expected true", kFile);
}

constexpr const char* kPreTokenizers = "ByteLevel, alone or in a Sequence after a Split or Digits";

// The steps of a Sequence, or the one step that there is: ByteLevel alone (GPT-2), after Digits (SmolLM) or after a Split (Qwen, Llama 3).
Status read_pre_tokenizer_steps(std::span<const JsonNode> steps, TokenizerBuilder* builder) {
  std::string type, first;
  for (size_t i = 0; i < steps.size(); ++i) {
    QW_TRY(read_type(steps[i], "a step of pre_tokenizer", &type));
    const bool known = i + 1 < steps.size() ? i == 0 && (type == "Split" || type == "Digits") : type == "ByteLevel";
    if (!known) return unsupported("pre_tokenizer step", *steps[i].find("type"), kPreTokenizers);
    if (i == 0) first = type;
  }
  if (steps.empty()) {
    return error(Code::kUnsupported, "%s: pre_tokenizer Sequence of 0 steps is not implemented; expected %s", kFile, kPreTokenizers);
  }
  bool use_regex = true;
  QW_TRY(read_byte_level(steps.back(), &use_regex));
  const bool splits = first == "Split";
  if (use_regex == splits) {
    return error(Code::kUnsupported, "%s: pre_tokenizer ByteLevel with use_regex %s is not implemented %s a Split", kFile, use_regex ? "true" : "false",
                 splits ? "after" : "without");
  }
  if (splits) return read_split(steps[0], builder);
  if (first == "ByteLevel") return builder->set_pattern(kFile, kGpt2Pattern);
  builder->set_matcher(match_smollm);
  return read_digits(steps[0]);
}

Status read_pre_tokenizer(const JsonNode& root, TokenizerBuilder* builder) {
  const JsonNode* part = root.find("pre_tokenizer");
  if (is_absent(part)) {
    return error(Code::kUnsupported, "%s: pre_tokenizer null is not implemented; expected %s", kFile, kPreTokenizers);
  }
  std::string type;
  QW_TRY(read_type(*part, "pre_tokenizer", &type));
  if (type == "ByteLevel") return read_pre_tokenizer_steps({part, 1}, builder);
  if (type != "Sequence") return unsupported("pre_tokenizer", *part->find("type"), kPreTokenizers);
  const JsonNode* steps = part->find("pretokenizers");
  if (steps == nullptr || !steps->is(Kind::kArray)) {
    return error(Code::kInvalidFile, "%s: pre_tokenizer Sequence has no array \"pretokenizers\"", kFile);
  }
  return read_pre_tokenizer_steps(steps->items, builder);
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
  for (const char* name : {"dropout", "continuing_subword_prefix", "end_of_word_suffix"}) {
    QW_TRY(refuse_option(*model, name));
  }
  bool ignore_merges = false;
  QW_TRY(read_flag(kFile, *model, "ignore_merges", &ignore_merges));
  builder->set_ignore_merges(ignore_merges);
  for (const char* name : {"unk_token", "byte_fallback"}) {
    if (!refuse_option(*model, name).ok()) builder->set_unknown_option(name);
  }
  return {};
}

// The ids that stand around a text.
struct Surroundings {
  std::vector<int32_t> begin, end;
};

Status read_template_ids(const JsonNode& processor, const JsonNode& name, std::vector<int32_t>* ids) {
  const JsonNode* known = processor.find("special_tokens");
  const JsonNode* token = known != nullptr && name.is(Kind::kString) ? known->find(name.text) : nullptr;
  const JsonNode* list = token != nullptr ? token->find("ids") : nullptr;
  if (list == nullptr || !list->is(Kind::kArray)) {
    return error(Code::kInvalidFile, "%s: post_processor TemplateProcessing: special_tokens has no ids for %s", kFile, name.describe().c_str());
  }
  for (const JsonNode& id : list->items) {
    if (!id.is(Kind::kInteger) || id.integer < 0 || id.integer > Vocabulary::kMaxId) {
      return error(Code::kInvalidFile, "%s: post_processor TemplateProcessing: found the id %s; expected 0 to %d", kFile, id.describe().c_str(),
                   Vocabulary::kMaxId);
    }
    ids->push_back(static_cast<int32_t>(id.integer));
  }
  return {};
}

// The template of a single text: special tokens, the text itself ("Sequence") once, special tokens.
Status read_template(const JsonNode& processor, Surroundings* around) {
  const JsonNode* single = processor.find("single");
  if (single == nullptr || !single->is(Kind::kArray)) {
    return error(Code::kInvalidFile, "%s: post_processor TemplateProcessing has no array \"single\"", kFile);
  }
  Surroundings own;
  int texts = 0;
  for (const JsonNode& piece : single->items) {
    const JsonNode* special = piece.find("SpecialToken");
    const JsonNode* name = special != nullptr ? special->find("id") : nullptr;
    if (name != nullptr) {
      QW_TRY(read_template_ids(processor, *name, texts == 0 ? &own.begin : &own.end));
    } else if (piece.find("Sequence") != nullptr) {
      ++texts;
    } else {
      return error(Code::kInvalidFile, "%s: post_processor TemplateProcessing: found %s; expected a SpecialToken or Sequence", kFile,
                   piece.describe().c_str());
    }
  }
  if (texts != 1) return error(Code::kUnsupported, "%s: post_processor TemplateProcessing with %d texts is not implemented; expected 1", kFile, texts);
  around->begin.insert(around->begin.begin(), own.begin.begin(), own.begin.end());
  around->end.insert(around->end.end(), own.end.begin(), own.end.end());
  return {};
}

// `part`: of a Sequence, or all of it. ByteLevel trims offsets, which nobody asks for here.
Status read_post_processor(const JsonNode& part, Surroundings* around) {
  std::string type;
  QW_TRY(read_type(part, "post_processor", &type));
  if (type == "ByteLevel") return {};
  if (type == "TemplateProcessing") return read_template(part, around);
  const JsonNode* parts = part.find("processors");
  if (type != "Sequence" || parts == nullptr || !parts->is(Kind::kArray)) {
    return unsupported("post_processor", *part.find("type"), "ByteLevel, TemplateProcessing or a Sequence of them");
  }
  for (const JsonNode& inner : parts->items) QW_TRY(read_post_processor(inner, around));
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
  if (const JsonNode* processor = root.find("post_processor"); !is_absent(processor)) {
    Surroundings around;
    QW_TRY(read_post_processor(*processor, &around));
    builder.set_surroundings(std::move(around.begin), std::move(around.end));
  }
  return builder.finish(out);
}

}  // namespace qwasm
