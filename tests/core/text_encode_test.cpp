// What people reported as broken in tokenizers, as small inputs with Hugging Face's answer (Qwen3's ids).
#include <chrono>
#include <map>
#include <random>

#include "core/text/unicode.h"
#include "tests/core/text_test_support.h"

namespace qwasm::text_test {
namespace {

constexpr char32_t kMark = 0xe123;
const std::string kMarkText = "\ue123";

std::string normalized(std::string_view text) {
  std::string buffer;
  return std::string(nfc(text, &buffer));
}

TEST(TextEncode, CutsAsTheFamilysPatternDoes) {
  EXPECT_EQ(encode(qwen3(), "->"), (Ids{405}));
  EXPECT_EQ(encode(qwen3(), "(x):\n"), (Ids{2075, 982}));
  EXPECT_EQ(encode(qwen3(), "3333+777").size(), 8u);
}

TEST(TextEncode, LeavesTheLastSpaceToTheNextWord) {
  EXPECT_EQ(encode(qwen3(), "a  b"), (Ids{64, 220, 293}));
  EXPECT_EQ(encode(qwen3(), "def f():\n    return  x"), (Ids{750, 282, 3932, 262, 470, 220, 856}));
  EXPECT_EQ(encode(qwen3(), "\n\na"), (Ids{271, 64}));
  EXPECT_EQ(encode(qwen3(), "hi   "), (Ids{6023, 262}));
}

TEST(TextEncode, PiecesEndWhereTheRegularExpressionEndsThem) {
  const PieceMatcher match = find_piece_matcher(kQwen2Pattern);
  ASSERT_NE(match, nullptr);
  const auto pieces = [&](std::string_view text) {
    std::string joined;
    while (!text.empty()) {
      const size_t length = match(text);
      joined += std::string(text.substr(0, length)) + "|";
      text.remove_prefix(length);
    }
    return joined;
  };
  EXPECT_EQ(pieces("a b  c"), "a| b| | c|");
  EXPECT_EQ(pieces("\u3000字"), "\u3000字|");
  EXPECT_EQ(pieces(" \n \r\n  x"), " \n \r\n| | x|");
  EXPECT_EQ(pieces("a!?\r\n\n b"), "a|!?\r\n\n| b|");
  EXPECT_EQ(pieces("12Ⅷ½ 4"), "1|2|Ⅷ|½| |4|");
  EXPECT_EQ(pieces("\u0085x\ufeffx"), "\u0085x|\ufeffx|");
  EXPECT_EQ(pieces("\u0085\u00851\ufeff\ufeff1"), "\u0085|\u0085|1|\ufeff\ufeff|1|");
  EXPECT_EQ(pieces("\n!"), "\n|!|");
  EXPECT_EQ(pieces("  "), "  |");
  EXPECT_EQ(pieces("I'll'LL'Re'v"), "I|'ll|'LL|'Re|'v|");
  EXPECT_EQ(pieces("'"), "'|");
  EXPECT_EQ(pieces("don'tx don’tx"), "don|'t|x| don|’tx|");  // a curly apostrophe makes no contraction
  EXPECT_EQ(pieces("\u0301a\u0301b"), "\u0301a|\u0301b|");
}

TEST(TextEncode, NormalizesOutsideAddedTokens) {
  EXPECT_EQ(encode(qwen3(), "cafe\u0301"), (Ids{924, 58858}));
  EXPECT_EQ(encode(qwen3(), "Vie\u0323\u0302t"), (Ids{35544, 124382}));
  EXPECT_EQ(encode(qwen3(), "\u1112\u1161\u11ab"), encode(qwen3(), "한"));
  for (const char* text :
       {"e\u0323\u0301<|im_end|>\u0301x", "\u1112\u1161\u11ab\u1100", "\u0958\u212b\u2126", "a\u0301\u0323"}) {
    EXPECT_EQ(qwen3().decode(encode(qwen3(), text, false), false), normalized(text));
  }
  EXPECT_EQ(encode(qwen3(), "e<|im_end|>\u0301"), (Ids{68, 151645, 53839}));  // nothing composes across a token
}

TEST(TextEncode, FoldsTheCaseOfContractions) {
  EXPECT_EQ(encode(qwen3(), "'llama"), (Ids{3278, 3029}));
  EXPECT_EQ(encode(qwen3(), "CAN'T"), (Ids{41955, 17323}));
  EXPECT_EQ(encode(qwen3(), " CAN'T"), (Ids{19508, 17323}));
  EXPECT_EQ(encode(qwen3(), "'ſx"), (Ids{6, 144815, 87}));
}

// Case 6. The template's own control tokens are real, those that people typed carry the mark and are plain text.
TEST(TextEncode, MarkedControlTokensArePlainText) {
  const Json golden = read_golden("qwen3-inert.json");
  const auto marked = [](std::string text) {
    for (const AddedToken& token : qwen3().added_tokens()) {
      for (size_t at = 0; (at = text.find(token.content, at)) != std::string::npos; ++at)
        text.insert(at + 1, kMarkText);
    }
    return text;
  };
  size_t seen = 0;
  for (const Json& one : golden["cases"]) {
    std::string text;
    bool rendered = true;  // by hand, which only plain turns allow
    for (const Json& message : one["messages"]) {
      const std::string role = message["role"];
      rendered = rendered && (role == "user" || role == "system");
      text += "<|im_start|>" + role + "\n" + marked(message["content"].get<std::string>()) + "<|im_end|>\n";
    }
    if (!rendered) continue;
    EXPECT_EQ(encode(qwen3(), text + "<|im_start|>assistant\n", true, kMark), one["ids"].get<Ids>()) << one["name"];
    ++seen;
  }
  EXPECT_EQ(seen, 4u);
}

TEST(TextEncode, MarksThemselvesAreNeverEncoded) {
  const std::string text = "e" + kMarkText + "\u0301 <" + kMarkText + "b>" + kMarkText;
  EXPECT_EQ(encode(qwen3(), text, true, kMark), encode(qwen3(), "é <b>"));
  EXPECT_EQ(encode(qwen3(), text, false, kMark), encode(qwen3(), "é <b>"));
  EXPECT_NE(encode(qwen3(), text), encode(qwen3(), "é <b>"));  // without the option they are text like any other
}

TEST(TextEncode, AMarkKeepsATokenOfOneCharacterPlain) {
  Json json = Json::parse(read_file("models/demo/tokenizer.json"));
  json["added_tokens"] = {{{"id", 2016}, {"content", "\u25b6"}, {"special", true}, {"normalized", false}},
                          {{"id", 2017}, {"content", "\u25c0"}, {"special", true}, {"normalized", true}}};
  const auto tokenizer = from_json(json.dump());
  const Ids plain = encode(*tokenizer, "a\u25b6b\u25c0", false);
  EXPECT_EQ(encode(*tokenizer, "a\u25b6" + kMarkText + "b\u25c0" + kMarkText, true, kMark), plain);
  EXPECT_EQ(encode(*tokenizer, "\u25b6\u25c0", true, kMark), (Ids{2016, 2017}));
}

TEST(TextEncode, AddedTokensCanBeReadAsPlainText) {
  EXPECT_EQ(encode(qwen3(), "<|im_end|>"), (Ids{151645}));
  EXPECT_EQ(encode(qwen3(), "<|im_end|>", false), (Ids{27, 91, 318, 6213, 91, 29}));
}

TEST(TextEncode, OnlySpecialTokensAreSkippedWhenDecoding) {
  const Ids ids = encode(qwen3(), "<think>a</think><tool_call><|im_end|>");
  EXPECT_EQ(ids, (Ids{151667, 64, 151668, 151657, 151645}));
  EXPECT_EQ(qwen3().decode(ids, true), "<think>a</think><tool_call>");
  EXPECT_EQ(qwen3().decode(ids, false), "<think>a</think><tool_call><|im_end|>");
}

TEST(TextEncode, MergesAsStringsAndAsPairsGiveTheSameIds) {
  EXPECT_EQ(encode(qwen3(), "The capital of France is"), (Ids{785, 6722, 315, 9625, 374}));
  Json json = Json::parse(read_file("models/demo/tokenizer.json"));
  for (Json& merge : json["model"]["merges"]) merge = merge[0].get<std::string>() + " " + merge[1].get<std::string>();
  const auto tokenizer = from_json(json.dump());
  const std::string text = "The capital of France is Paris; 你好, 12 + 30 = 42.";
  EXPECT_EQ(encode(*tokenizer, text), encode(demo(), text));
}

// Case 9: the model's vocabulary is larger than the tokenizer's.
TEST(TextEncode, IdsWithoutATokenDecodeToNothing) {
  EXPECT_EQ(qwen3().id_limit(), 151669);
  EXPECT_EQ(qwen3().token_count(), 151669u);
  EXPECT_TRUE(qwen3().has_token(0) && qwen3().has_token(151668));
  EXPECT_FALSE(qwen3().has_token(151669) || qwen3().has_token(-1) || qwen3().has_token(INT32_MAX) ||
               qwen3().has_token(INT32_MIN));
  EXPECT_EQ(qwen3().decode(Ids{151669, 9707, -1, 151935, INT32_MAX, INT32_MIN}, false), "Hello");
}

TEST(TextEncode, FindsTokensByTheirText) {
  EXPECT_EQ(qwen3().find("<|im_end|>"), 151645);
  EXPECT_EQ(qwen3().find("Ġthe"), 279);
  EXPECT_EQ(qwen3().find(" the"), std::nullopt);
  ASSERT_EQ(qwen3().added_tokens().size(), 26u);
  EXPECT_EQ(qwen3().added_tokens().front().content, "<|endoftext|>");
  EXPECT_FALSE(qwen3().added_tokens().back().special);
}

TEST(TextEncode, TextThatIsNotUtf8IsAnErrorWithItsOffset) {
  Ids ids;
  const Status status = qwen3().encode("abc\xff", true, 0, &ids);
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_EQ(status.message(), "text: not UTF-8 at byte 3");
  EXPECT_EQ(qwen3().encode("abc", true, 0xd800, &ids).code(), Code::kInvalidArgument);
}

TEST(TextEncode, NulAndEmptyTextAreTextLikeAnyOther) {
  EXPECT_EQ(encode(qwen3(), ""), Ids{});
  const std::string text("a\0b", 3);
  EXPECT_EQ(qwen3().decode(encode(qwen3(), text), false), text);
}

// The merging of short pieces (by scanning) and of long ones (with a heap) against the plain definition.
TEST(TextEncode, MergesPiecesOfEveryLengthAsDefined) {
  const Json json = Json::parse(read_file("models/demo/tokenizer.json"));
  std::map<std::pair<std::string, std::string>, size_t> ranks;
  for (const Json& merge : json["model"]["merges"]) ranks.emplace(std::pair(merge[0], merge[1]), ranks.size());
  std::mt19937 random(1);
  for (size_t length = 1; length <= 200; ++length) {
    std::string text;
    while (text.size() < length) text += "etaoinshrdluTHE"[random() % 15];
    std::vector<std::string> parts;
    for (const char c : text) parts.emplace_back(1, c);
    while (true) {
      size_t best = 0, best_rank = SIZE_MAX;
      for (size_t i = 0; i + 1 < parts.size(); ++i) {
        const auto found = ranks.find({parts[i], parts[i + 1]});
        if (found != ranks.end() && found->second < best_rank) best_rank = found->second, best = i;
      }
      if (best_rank == SIZE_MAX) break;
      parts[best] += parts[best + 1];
      parts.erase(parts.begin() + best + 1);
    }
    Ids expected;
    for (const std::string& part : parts) expected.push_back(json["model"]["vocab"][part].get<int>());
    ASSERT_EQ(encode(demo(), text), expected) << text;
  }
}

// Quadratic merging would take minutes.
TEST(TextEncode, HugePiecesTakeLittleTime) {
  const auto begin = std::chrono::steady_clock::now();
  for (const char* unit : {"a", " ", "<", "=", "中", "\u0301", "ab"}) {
    std::string text;
    while (text.size() < 200'000) text += unit;
    EXPECT_EQ(qwen3().decode(encode(qwen3(), text), false), text);
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
}

}  // namespace
}  // namespace qwasm::text_test
