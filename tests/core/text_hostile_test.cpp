// Files that are cut, wrong or malicious are refused with a typed error that says what is wrong.
#include <functional>
#include <memory>

#include "tests/core/text_test_support.h"

namespace qwasm::text_test {
namespace {

// Loads from a copy that ends exactly where the bytes end, so that AddressSanitizer sees every step beyond.
Status load(std::string_view json, std::unique_ptr<Tokenizer>* out) {
  const std::unique_ptr<char[]> exact(new char[json.size()]);
  std::copy(json.begin(), json.end(), exact.get());
  return Tokenizer::from_json({exact.get(), json.size()}, out);
}

Status load(std::string_view json) {
  std::unique_ptr<Tokenizer> tokenizer;
  return load(json, &tokenizer);
}

Json small_tokenizer() {
  Json json = Json::parse(read_file("models/demo/tokenizer.json"));
  Json vocab = Json::object(), merges = Json::array();
  for (size_t i = 0; i < 4; ++i) merges.push_back(json["model"]["merges"][i]);
  for (const auto& [token, id] : json["model"]["vocab"].items()) {
    if (id < 260) vocab[token] = id;
  }
  json["model"]["vocab"] = vocab;
  json["model"]["merges"] = merges;
  return json;
}

struct Change {
  const char* pointer;  // what to replace
  Json value;
  Code code;
  const char* sentence;  // a part of it
};

void expect_refused(const Status& status, Code code, std::string_view sentence) {
  EXPECT_EQ(status.code(), code) << status.message();
  EXPECT_NE(status.message().find(sentence), std::string::npos) << status.message() << "\nexpected: " << sentence;
}

TEST(TextHostile, TheSmallTokenizerOfTheseTestsIsGood) {
  std::unique_ptr<Tokenizer> tokenizer;
  const Status status = load(small_tokenizer().dump(), &tokenizer);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(tokenizer->decode(encode(*tokenizer, "here the <think> é"), false), "here the <think> é");
}

TEST(TextHostile, WhatIsNotImplementedIsRefusedByName) {
  const Json step = {{"type", "Digits"}}, whole = {{"type", "ByteLevel"}, {"add_prefix_space", false}};
  const Change changes[] = {
      {"/pre_tokenizer/pretokenizers/0/pattern/Regex", R"(\p{N}{1,3}|\s+)", Code::kUnsupported,
       R"(pattern "\p{N}{1,3}|\s+")"},
      {"/pre_tokenizer/pretokenizers/0/pattern", {{"String", "x"}}, Code::kUnsupported, "Split with the pattern \"x\""},
      {"/pre_tokenizer/pretokenizers/0/behavior", "Removed", Code::kUnsupported, "behavior \"Removed\""},
      {"/pre_tokenizer/pretokenizers/0/invert", true, Code::kUnsupported, "invert true"},
      {"/pre_tokenizer/pretokenizers/1/add_prefix_space", true, Code::kUnsupported, "add_prefix_space true"},
      {"/pre_tokenizer/pretokenizers/1/use_regex", true, Code::kUnsupported, "use_regex true"},
      {"/pre_tokenizer/pretokenizers/1", {{"type", "ByteLevel"}}, Code::kUnsupported, "add_prefix_space true"},
      {"/pre_tokenizer/pretokenizers/0", step, Code::kUnsupported, "use_regex false"},
      {"/pre_tokenizer/pretokenizers", {step, whole}, Code::kUnsupported, "individual_digits false"},
      {"/pre_tokenizer/pretokenizers", {whole, whole}, Code::kUnsupported, "\"ByteLevel\""},
      {"/pre_tokenizer/pretokenizers/2", step, Code::kUnsupported, "step \"ByteLevel\""},
      {"/pre_tokenizer/pretokenizers", Json::array(), Code::kUnsupported, "of 0 steps"},
      {"/pre_tokenizer", {{"type", "Whitespace"}}, Code::kUnsupported, "pre_tokenizer \"Whitespace\""},
      {"/pre_tokenizer", nullptr, Code::kUnsupported, "pre_tokenizer null"},
      {"/normalizer/type", "Lowercase", Code::kUnsupported, "normalizer \"Lowercase\""},
      {"/decoder/type", "WordPiece", Code::kUnsupported, "decoder \"WordPiece\""},
      {"/model/type", "Unigram", Code::kUnsupported, "model type \"Unigram\""},
      {"/model/dropout", 0.1, Code::kUnsupported, "model.dropout"},
      {"/model/continuing_subword_prefix", "##", Code::kUnsupported, "model.continuing_subword_prefix is \"##\""},
      {"/model/end_of_word_suffix", "</w>", Code::kUnsupported, "model.end_of_word_suffix"},
      {"/model/ignore_merges", 1, Code::kInvalidFile, "ignore_merges is 1"},
      {"/post_processor", {{"type", "RobertaProcessing"}}, Code::kUnsupported, "post_processor \"RobertaProcessing\""},
  };
  for (const Change& change : changes) {
    Json json = small_tokenizer();
    json[Json::json_pointer(change.pointer)] = change.value;
    const Status status = load(json.dump());
    expect_refused(status, change.code, change.sentence);
    EXPECT_TRUE(status.message().starts_with("tokenizer.json: ")) << status.message();
  }
}

TEST(TextHostile, WhatChangesNoIdIsAccepted) {
  const Change changes[] = {
      {"/normalizer", nullptr, Code::kOk, ""},
      {"/decoder", nullptr, Code::kOk, ""},
      {"/post_processor", {{"type", "ByteLevel"}}, Code::kOk, ""},
      {"/pre_tokenizer/pretokenizers", {{{"type", "ByteLevel"}, {"add_prefix_space", false}}}, Code::kOk, ""},
      {"/model/ignore_merges", true, Code::kOk, ""},
      {"/truncation", {{"max_length", 1}}, Code::kOk, ""},
      {"/model/type", nullptr, Code::kOk, ""},
      {"/model/continuing_subword_prefix", "", Code::kOk, ""},
      {"/model/byte_fallback", true, Code::kOk, ""},  // every byte has a token
      {"/model/unk_token", "<|endoftext|>", Code::kOk, ""},
      {"/model/dropout", 0, Code::kOk, ""},
  };
  for (const Change& change : changes) {
    Json json = small_tokenizer();
    json[Json::json_pointer(change.pointer)] = change.value;
    std::unique_ptr<Tokenizer> tokenizer;
    const Status status = load(json.dump(), &tokenizer);
    ASSERT_TRUE(status.ok()) << change.pointer << status.message();
    EXPECT_EQ(encode(*tokenizer, "there<think>").back(), 2023) << change.pointer;
  }
}

TEST(TextHostile, WrongVocabulariesAndMergesAreRefused) {
  const Change changes[] = {
      {"/model/vocab", Json::array({Json::array({"a", 0.5})}), Code::kInvalidFile, "model.vocab"},
      {"/model/vocab", nullptr, Code::kInvalidFile, "model.vocab"},
      {"/model/vocab/a", "x", Code::kInvalidFile, "the id of \"a\" is \"x\""},
      {"/model/vocab/a", 1.0, Code::kInvalidFile, "the id of \"a\""},
      {"/model/vocab/a", -1, Code::kInvalidFile, "the id -1"},
      {"/model/vocab/a", 1 << 24, Code::kInvalidFile, "the id 16777216"},
      {"/model/vocab/a", UINT64_MAX, Code::kInvalidFile, "the id of \"a\""},
      {"/model/vocab/a", (1 << 24) - 1, Code::kInvalidFile, "far apart"},
      {"/model/vocab/a", 65, Code::kInvalidFile, "both have the id 65"},
      {"/model/vocab/<think>", 300, Code::kInvalidFile, "\"<think>\" has the id 2023, but also the id 300"},
      {"/model/merges", Json::array(), Code::kInvalidFile, "has no merges"},
      {"/model/merges", Json::array({Json::array({"a", "b"})}), Code::kInvalidFile, "needs the token \"ab\""},
      {"/model/merges", Json::array({"zz q"}), Code::kInvalidFile,
       "merge 1, of \"zz\" and \"q\", needs the token \"zz\""},
      {"/model/merges", Json::array({"a"}), Code::kInvalidFile, "merge 1 is \"a\""},
      {"/model/merges", Json::array({"a b c"}), Code::kInvalidFile, "merge 1 is \"a b c\""},
      {"/model/merges", Json::array({Json::array({"a", "b", "c"})}), Code::kInvalidFile,
       "model.merges: found an array"},
      {"/model/merges/2", 7, Code::kInvalidFile, "model.merges: found 7"},
      {"/model/merges", {{"a", "b"}}, Code::kInvalidFile, "model.merges is not an array"},
      {"/model/merges", nullptr, Code::kInvalidFile, "model.merges is not an array"},
      {"/added_tokens/0/id", "7", Code::kInvalidFile, "an entry's id is \"7\""},
      {"/added_tokens/0/id", 2017, Code::kInvalidFile, "both have the id 2017"},
      {"/added_tokens/0/id", 65, Code::kInvalidFile, "both have the id 65"},
      {"/added_tokens/0/content", nullptr, Code::kInvalidFile, "content is null"},
      {"/added_tokens/0/special", 1, Code::kInvalidFile, "special is 1"},
      {"/added_tokens", "x", Code::kInvalidFile, "added_tokens is \"x\""},
      {"/model", nullptr, Code::kInvalidFile, "no object \"model\""},
  };
  for (const Change& change : changes) {
    Json json = small_tokenizer();
    json[Json::json_pointer(change.pointer)] = change.value;
    expect_refused(load(json.dump()), change.code, change.sentence);
  }
}

TEST(TextHostile, AByteWithoutATokenIsAnErrorOnlyWhereAnUnknownTokenWouldStandForIt) {
  Json json = small_tokenizer();
  json["model"]["vocab"].erase("z");
  std::unique_ptr<Tokenizer> tokenizer;
  ASSERT_TRUE(load(json.dump(), &tokenizer).ok());
  EXPECT_EQ(tokenizer->decode(encode(*tokenizer, "azb"), false), "ab");  // as Hugging Face
  json["model"]["unk_token"] = "<unk>";
  expect_refused(load(json.dump()), Code::kUnsupported,
                 "model.unk_token is not implemented, and the byte 0x7a has no token");
}

TEST(TextHostile, BrokenJsonIsRefused) {
  std::string deep(1'000'000, '[');
  const std::string texts[] = {"",
                               " ",
                               "[",
                               "{",
                               "nul",
                               "null",
                               "7",
                               "\"x\"",
                               "[]",
                               "{}",
                               "{\"model\":NaN}",
                               "{\"model\":{\"vocab\":{\"a\":1e999}}}",
                               "{\"model\":",
                               "{\"a\":\"\\ud800\"}",
                               "{\"a\":\"\xff\"}",
                               "\xef\xbb\xbf",
                               std::string("{\"a\":1}\0", 8),
                               "{\"model\":1,\"model\":2}",
                               deep,
                               "{\"model\":{\"vocab\":" + deep,
                               "{\"model\":{\"merges\":" + deep,
                               "{\"added_tokens\":" + deep,
                               "{\"model\":{\"vocab\":{\"a\":0,\"a\":1}}}",
                               "{\"a\":[" + std::string(1'000'000, '0') + "]}"};
  for (const std::string& text : texts) {
    const Status status = load(text);
    EXPECT_EQ(status.code(), Code::kInvalidFile) << text.substr(0, 60);
    EXPECT_TRUE(status.message().starts_with("tokenizer.json: ")) << status.message();
    EXPECT_LT(status.message().size(), 500u);
  }
  std::string many = "{\"a\":[0";
  for (int i = 0; i < 500'000; ++i) many += ",0";
  expect_refused(load(many + "]}"), Code::kInvalidFile, "more than 400000 values");
}

// Every value of the file replaced by every kind of value: an error or a tokenizer that works, nothing else.
TEST(TextHostile, WrongTypesAnywhereNeverCrash) {
  const Json good = small_tokenizer();
  const Json flat = good.flatten();
  const Json values[] = {
      nullptr, true, -1, 0.5, 1e300, UINT64_MAX, "x", Json::array(), Json::object(), Json::array({Json::array({"a"})})};
  size_t refused = 0, tried = 0;
  const auto attempt = [&](const std::string& pointer, const Json& value) {
    Json json = good;
    json[Json::json_pointer(pointer)] = value;
    std::unique_ptr<Tokenizer> tokenizer;
    const Status status = load(json.dump(), &tokenizer);
    ++tried;
    refused += !status.ok();
    if (status.ok()) {
      EXPECT_FALSE(tokenizer->decode(encode(*tokenizer, "ee"), false).empty()) << pointer << value;
    }
  };
  for (const auto& [pointer, unused] : flat.items()) {
    // Of the 260 tokens a few stand for all.
    if (pointer.starts_with("/model/vocab/") && pointer.size() > 14) continue;
    for (const Json& value : values) attempt(pointer, value);
    for (size_t cut = pointer.rfind('/'); cut != 0; cut = pointer.rfind('/', cut - 1))
      attempt(pointer.substr(0, cut), values[tried % 10]);
  }
  EXPECT_GT(tried, 1000u);
  EXPECT_GT(refused, tried / 2);
}

TEST(TextHostile, EveryTruncationOfTheDemoTokenizerIsRefused) {
  const std::string json = read_file("models/demo/tokenizer.json");
  const size_t last_brace = json.rfind('}');
  ASSERT_NE(last_brace, std::string::npos);
  for (size_t i = 0; i < 2000; ++i) {
    const size_t length = last_brace * i / 1999;
    const Status status = load(std::string_view(json).substr(0, length));
    ASSERT_EQ(status.code(), Code::kInvalidFile) << length;
    ASSERT_TRUE(status.message().starts_with("tokenizer.json: ")) << status.message();
  }
}

TEST(TextHostile, TruncatedVocabAndMergesAreRefusedOrRead) {
  const Json json = small_tokenizer();
  const std::string vocab = json["model"]["vocab"].dump(), config = R"({"tokenizer_class": "Qwen2Tokenizer"})";
  std::string merges = "#version: 0.2\n";
  for (const Json& merge : json["model"]["merges"])
    merges += merge[0].get<std::string>() + " " + merge[1].get<std::string>() + "\n";
  const auto load_files = [](std::string_view v, std::string_view m, std::string_view c) {
    const std::vector<char> a(v.begin(), v.end()), b(m.begin(), m.end()), d(c.begin(), c.end());
    std::unique_ptr<Tokenizer> tokenizer;
    return Tokenizer::from_vocab_and_merges(a, b, d, &tokenizer);
  };
  ASSERT_TRUE(load_files(vocab, merges, config).ok()) << load_files(vocab, merges, config).message();
  for (size_t n = 0; n < vocab.size(); ++n)
    expect_refused(load_files(vocab.substr(0, n), merges, config), Code::kInvalidFile, "vocab.json: ");
  for (size_t n = 1; n < config.size(); ++n) {
    expect_refused(load_files(vocab, merges, config.substr(0, n)), Code::kInvalidFile, "tokenizer_config.json: ");
  }
  for (size_t n = 0; n < merges.size(); ++n) {
    const Status status = load_files(vocab, merges.substr(0, n), config);
    if (!status.ok()) expect_refused(status, Code::kInvalidFile, "merges.txt: ");
  }
  expect_refused(load_files(vocab, "", config), Code::kInvalidFile, "merges.txt: has no merges");
  expect_refused(load_files(vocab, "#version: 0.2", config), Code::kInvalidFile, "merges.txt: has no merges");
  expect_refused(load_files(vocab, "h e\nabc\n", config), Code::kInvalidFile, "merge 2 is \"abc\"");
  expect_refused(load_files("[1]", merges, config), Code::kInvalidFile, "vocab.json: is an array");
  expect_refused(load_files("<html>", merges, config), Code::kInvalidFile, "vocab.json: not valid JSON");
}

TEST(TextHostile, TokenizerConfigIsReadOrRefused) {
  const auto refuse = [](const std::string& config, Code code, const char* sentence) {
    std::unique_ptr<Tokenizer> tokenizer;
    expect_refused(Tokenizer::from_vocab_and_merges(read_file("models/demo/vocab.json"),
                                                    read_file("models/demo/merges.txt"), config, &tokenizer),
                   code, sentence);
  };
  refuse(R"({"tokenizer_class": "GPT2Tokenizer"})", Code::kUnsupported, "tokenizer_class \"GPT2Tokenizer\"");
  refuse(R"({"tokenizer_class": 7})", Code::kInvalidFile, "tokenizer_class is 7");
  refuse(R"({"add_prefix_space": true})", Code::kUnsupported, "add_prefix_space true");
  refuse(R"({"added_tokens_decoder": []})", Code::kInvalidFile, "added_tokens_decoder is an array");
  refuse(R"({"added_tokens_decoder": {"x7": {"content": "a"}}})", Code::kInvalidFile, "the key \"x7\"");
  refuse(R"({"added_tokens_decoder": {"99999999999999999999": {"content": "a"}}})", Code::kInvalidFile,
         "expected an id");
  refuse(R"({"added_tokens_decoder": {"2016": {"content": 1}}})", Code::kInvalidFile, "content is 1");
  refuse("[]", Code::kInvalidFile, "is an array");
}

}  // namespace
}  // namespace qwasm::text_test
