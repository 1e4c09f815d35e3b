// Fields that tokenizer.json and tokenizer_config.json have in common.
#pragma once

#include "core/base/status.h"
#include "core/text/added_tokens.h"
#include "core/text/json_tree.h"

namespace qwasm {

// The boolean `name` of `object`; leaves `value` as it is where the field is absent or null, and fails where it is
// something else.
inline Status read_flag(const char* file, const JsonNode& object, const char* name, bool* value) {
  const JsonNode* node = object.find(name);
  if (node == nullptr || node->is(JsonNode::Kind::kNull)) return {};
  if (!node->is(JsonNode::Kind::kBool)) {
    return error(Code::kInvalidFile, "%s: %s is %s; expected true or false", file, name, node->describe().c_str());
  }
  *value = node->boolean;
  return {};
}

// Everything of an added token but its id.
inline Status read_added_token(const char* file, const JsonNode& object, AddedToken* token) {
  const JsonNode* content = object.find("content");
  if (content == nullptr || !content->is(JsonNode::Kind::kString)) {
    return error(Code::kInvalidFile, "%s: an added token's content is %s; expected a string", file,
                 content == nullptr ? "missing" : content->describe().c_str());
  }
  token->content = content->text;
  QW_TRY(read_flag(file, object, "special", &token->special));
  token->normalized = !token->special;  // what an absent field means
  QW_TRY(read_flag(file, object, "normalized", &token->normalized));
  QW_TRY(read_flag(file, object, "single_word", &token->single_word));
  QW_TRY(read_flag(file, object, "lstrip", &token->lstrip));
  return read_flag(file, object, "rstrip", &token->rstrip);
}

}  // namespace qwasm
