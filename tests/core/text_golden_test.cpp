// Ids and decodings equal Hugging Face's on every golden, from tokenizer.json and from vocab.json with merges.txt.
#include <string>

#include "core/text/stream_decoder.h"
#include "tests/core/text_test_support.h"

namespace qwasm::text_test {
namespace {

// The files of an older folder with the same tokenizer.
struct OldFiles {
  std::string vocab, merges, config;
};

OldFiles old_files_of(const std::string& tokenizer_json) {
  const Json json = Json::parse(tokenizer_json);
  OldFiles files;
  files.vocab = json["model"]["vocab"].dump();
  files.merges = "#version: 0.2\n";
  for (const Json& merge : json["model"]["merges"]) {
    files.merges += merge[0].get<std::string>() + " " + merge[1].get<std::string>() + "\n";
  }
  Json config = {{"tokenizer_class", "Qwen2Tokenizer"}, {"add_prefix_space", false}};
  for (Json token : json["added_tokens"]) {
    const std::string id = std::to_string(token["id"].get<int>());
    token.erase("id");
    config["added_tokens_decoder"][id] = token;
  }
  files.config = config.dump();
  return files;
}

std::unique_ptr<Tokenizer> from_old_files(const OldFiles& files) {
  std::unique_ptr<Tokenizer> tokenizer;
  const Status status = Tokenizer::from_vocab_and_merges(files.vocab, files.merges, files.config, &tokenizer);
  EXPECT_TRUE(status.ok()) << status.message();
  return tokenizer;
}

void expect_golden(const Tokenizer& tokenizer, const std::string& name, size_t count) {
  const Json golden = read_golden(name);
  ASSERT_EQ(golden["cases"].size(), count);
  for (const Json& one : golden["cases"]) {
    const auto text = one["text"].get<std::string>();
    const auto ids = one["ids"].get<Ids>();
    ASSERT_EQ(encode(tokenizer, text), ids) << one["text"];
    ASSERT_EQ(tokenizer.decode(ids, false), one["decoded"].get<std::string>()) << one["text"];
    ASSERT_EQ(tokenizer.decode(ids, true), one["decoded_skip_special"].get<std::string>()) << one["text"];
  }
}

TEST(TextGolden, Qwen3FromTokenizerJson) { expect_golden(qwen3(), "qwen3-tokenizer.json", 427); }

TEST(TextGolden, Qwen3FromVocabAndMerges) {
  const auto tokenizer = from_old_files(old_files_of(read_file(kQwen3Json)));
  expect_golden(*tokenizer, "qwen3-tokenizer.json", 427);
  EXPECT_EQ(tokenizer->id_limit(), qwen3().id_limit());
}

TEST(TextGolden, DemoFromTokenizerJson) { expect_golden(demo(), "demo-tokenizer.json", 187); }

TEST(TextGolden, DemoFromVocabAndMerges) {
  const OldFiles files = {read_file("models/demo/vocab.json"), read_file("models/demo/merges.txt"),
                          read_file("models/demo/tokenizer_config.json")};
  expect_golden(*from_old_files(files), "demo-tokenizer.json", 187);
}

TEST(TextGolden, DemoFromVocabAndMergesWithoutTheirLineEnds) {
  OldFiles files = {read_file("models/demo/vocab.json"), "", ""};
  for (const char c : read_file("models/demo/merges.txt")) files.merges += c == '\n' ? "\r\n" : std::string(1, c);
  files.merges.resize(files.merges.size() - 2);
  const auto tokenizer = from_old_files(files);
  EXPECT_EQ(encode(*tokenizer, "Hello, world!"), (Ids{675, 11, 595, 646, 0}));
  EXPECT_TRUE(tokenizer->added_tokens().empty());
}

// Random sets of added tokens with random flags (case 7's kind).
TEST(TextGolden, AddedTokensWithEveryFlag) {
  const Json golden = read_golden("text-added-tokens.json");
  Json json = Json::parse(read_file("models/demo/tokenizer.json"));
  ASSERT_EQ(golden["cases"].size(), 120u);
  for (const Json& one : golden["cases"]) {
    json["added_tokens"] = one["added_tokens"];
    json["normalizer"] = one["nfc"].get<bool>() ? Json{{"type", "NFC"}} : Json(nullptr);
    const auto tokenizer = from_json(json.dump());
    for (const Json& text : one["texts"]) {
      const auto ids = text["ids"].get<Ids>();
      ASSERT_EQ(encode(*tokenizer, text["text"].get<std::string>()), ids) << text << one["added_tokens"] << one["nfc"];
      ASSERT_EQ(tokenizer->decode(ids, false), text["decoded"].get<std::string>()) << text << one["added_tokens"];
      ASSERT_EQ(tokenizer->decode(ids, true), text["decoded_skip_special"].get<std::string>())
          << text << one["added_tokens"];
    }
  }
}

}  // namespace
}  // namespace qwasm::text_test
