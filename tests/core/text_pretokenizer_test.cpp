// Pre-tokenizers, whole tokens before merges and what stands around a text: the families beside Qwen3, against Hugging Face.
#include "core/text/pretokenizer.h"
#include "core/text/utf8.h"
#include "tests/core/text_test_support.h"

namespace qwasm::text_test {
namespace {

// Lengths in characters.
std::vector<int> pieces_of(PieceMatcher match, std::string_view text) {
  std::vector<int> lengths;
  while (!text.empty()) {
    const std::string_view piece = text.substr(0, match(text));
    lengths.push_back(0);
    for (size_t at = 0; at < piece.size(); at += read_valid_utf8(piece.data() + at).length) ++lengths.back();
    text.remove_prefix(piece.size());
  }
  return lengths;
}

TEST(PreTokenizer, CutsTextsWhereHuggingFaceDoes) {
  const Json golden = read_golden("text-pretokenizers.json");
  ASSERT_EQ(golden["pieces"].size(), 5u);
  for (const auto& [name, pieces] : golden["pieces"].items()) {
    const PreTokenizer* pre_tokenizer = pre_tokenizer_of(name);
    ASSERT_NE(pre_tokenizer, nullptr) << name;
    ASSERT_EQ(pieces.size(), golden["texts"].size());
    for (size_t i = 0; i < pieces.size(); ++i) {
      const auto text = golden["texts"][i].get<std::string>();
      ASSERT_EQ(pieces_of(pre_tokenizer->match, text), pieces[i].get<std::vector<int>>()) << name << " " << golden["texts"][i];
    }
  }
}

TEST(PreTokenizer, TakesATimeThatGrowsWithTheText) {
  for (const char* name : {"gpt-2", "smollm", "default"}) {
    std::string text;
    for (int i = 0; i < 200'000; ++i) text += i % 3 == 0 ? "a" : i % 3 == 1 ? "  " : "٣";
    EXPECT_FALSE(pieces_of(pre_tokenizer_of(name)->match, text + std::string(200'000, ' ') + std::string(200'000, '7')).empty());
  }
}

TEST(PreTokenizer, IsKnownByItsNameOrNotAtAll) {
  EXPECT_EQ(pre_tokenizer_of("tekken"), nullptr);
  EXPECT_EQ(pre_tokenizer_of(""), nullptr);
  EXPECT_TRUE(pre_tokenizer_of("llama-bpe")->ignore_merges);
  EXPECT_TRUE(pre_tokenizer_of("llama-bpe")->add_bos);
  EXPECT_FALSE(pre_tokenizer_of("smollm")->ignore_merges);
  EXPECT_TRUE(pre_tokenizer_of("qwen2")->nfc);
}

Json with_family(const Json& family) {
  Json json = Json::parse(read_file("models/demo/tokenizer.json"));
  json.merge_patch(family["changes"]);
  const auto drop = family["drop_merges"].get<size_t>();
  if (drop == 0) return json;
  Json kept = Json::array();
  for (size_t i = 0; i < json["model"]["merges"].size(); ++i) {
    if ((i + 1) % drop != 0) kept.push_back(json["model"]["merges"][i]);
  }
  json["model"]["merges"] = kept;
  return json;
}

TEST(TokenizerFamily, GivesTheIdsOfHuggingFace) {
  const Json golden = read_golden("text-families.json");
  ASSERT_EQ(golden["families"].size(), 4u);
  for (const Json& family : golden["families"]) {
    const auto tokenizer = from_json(with_family(family).dump());
    ASSERT_NE(tokenizer, nullptr) << family["name"];
    EXPECT_EQ(tokenizer->begin_ids(), family["begin"].get<Ids>()) << family["name"];
    EXPECT_EQ(tokenizer->end_ids(), family["end"].get<Ids>()) << family["name"];
    ASSERT_EQ(family["ids"].size(), golden["texts"].size());
    for (size_t i = 0; i < family["ids"].size(); ++i) {
      ASSERT_EQ(encode(*tokenizer, golden["texts"][i].get<std::string>()), family["ids"][i].get<Ids>()) << family["name"] << golden["texts"][i];
    }
  }
}

TEST(IgnoreMerges, FindsWholeTokensOfTheModelButNoAddedNorSpecialOnes) {
  Json json = Json::parse(read_file("models/demo/tokenizer.json"));
  json["model"]["ignore_merges"] = true;
  json["model"]["vocab"]["unmergeable"] = 2016;
  json["model"]["vocab"]["special"] = 2017;
  for (Json& token : json["added_tokens"]) token["id"] = token["id"].get<int>() + 3;
  json["added_tokens"].push_back({{"id", 2017}, {"content", "special"}, {"special", true}});
  json["added_tokens"].push_back({{"id", 2018}, {"content", "added"}, {"special", false}});
  const auto tokenizer = from_json(json.dump());
  ASSERT_NE(tokenizer, nullptr);
  EXPECT_EQ(encode(*tokenizer, "unmergeable"), (Ids{2016}));
  EXPECT_GT(encode(*tokenizer, "unmergeables").size(), 1u);
  for (const auto& [text, id] : {std::pair("special", 2017), std::pair("added", 2018)}) {
    EXPECT_EQ(encode(*tokenizer, text), (Ids{id}));
    const Ids plain = encode(*tokenizer, text, false);
    EXPECT_GT(plain.size(), 1u);
    EXPECT_EQ(tokenizer->decode(plain, false), text);
  }

  json["model"]["ignore_merges"] = false;
  EXPECT_GT(encode(*from_json(json.dump()), "unmergeable").size(), 1u);
}

// "'r" is two pieces of GPT-2's pattern, and "'re" is one: what a grammar forces must not rest on the first cut.
TEST(SettledBytes, AreNotThoseThatCouldBecomeAContraction) {
  const Json golden = read_golden("text-families.json");
  const auto tokenizer = from_json(with_family(golden["families"][0]).dump());
  EXPECT_EQ(tokenizer->settled_bytes("we'r"), 2u);
  EXPECT_EQ(tokenizer->settled_bytes("we're"), 2u);
  EXPECT_EQ(tokenizer->settled_bytes("we are"), 2u);
  EXPECT_EQ(tokenizer->settled_bytes("we 'r"), 4u);
  EXPECT_EQ(tokenizer->settled_bytes(""), 0u);
}

Json with_template(const Json& processor) {
  Json json = Json::parse(read_file("models/demo/tokenizer.json"));
  json["post_processor"] = processor;
  return json;
}

void expect_template_refused(const char* processor, Code code, const char* sentence) {
  std::unique_ptr<Tokenizer> tokenizer;
  const Status status = Tokenizer::from_json(with_template(Json::parse(processor)).dump(), &tokenizer);
  EXPECT_EQ(status.code(), code) << processor << status.message();
  EXPECT_NE(std::string(status.message()).find(sentence), std::string::npos) << status.message();
}

TEST(TemplateProcessing, IsRefusedByNameWhereItIsNoTemplateOfOneText) {
  expect_template_refused(R"({"type": "BertProcessing"})", Code::kUnsupported, "BertProcessing");
  expect_template_refused(R"({"type": "Sequence", "processors": [{"type": "RobertaProcessing"}]})", Code::kUnsupported, "RobertaProcessing");
  expect_template_refused(R"({"type": "TemplateProcessing"})", Code::kInvalidFile, "single");
  expect_template_refused(R"({"type": "TemplateProcessing", "single": []})", Code::kUnsupported, "0 texts");
  expect_template_refused(R"({"type": "TemplateProcessing", "single": [{"Word": 1}]})", Code::kInvalidFile, "SpecialToken");
  expect_template_refused(R"({"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>"}}], "special_tokens": {}})", Code::kInvalidFile,
                          "special_tokens has no ids for \"<s>\"");
  for (const char* id : {"-1", "16777216", "\"1\"", "1.5"}) {
    const std::string ids = std::string(R"("special_tokens": {"<s>": {"ids": [)") + id + "]}}}";
    const std::string processor = R"({"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>"}}], )" + ids;
    expect_template_refused(processor.c_str(), Code::kInvalidFile, "expected 0 to");
  }
  expect_template_refused(R"({"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>"}}, {"Sequence": {"id": "A"}}],
                              "special_tokens": {"<s>": {"ids": [2047]}}})",
                          Code::kInvalidFile, "2047");
}

}  // namespace
}  // namespace qwasm::text_test
