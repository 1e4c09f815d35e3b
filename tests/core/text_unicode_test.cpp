// Character classes and NFC agree with the reference on every code point.
#include <map>

#include "core/text/unicode.h"
#include "core/text/utf8.h"
#include "tests/core/text_test_support.h"

namespace qwasm::text_test {
namespace {

std::string utf8(char32_t code) {
  std::string out;
  append_utf8(code, &out);
  return out;
}

std::string normalized(std::string_view text) {
  std::string buffer;
  return std::string(nfc(text, &buffer));
}

template <class Visit>
void for_each_character(const Visit& visit) {
  for (char32_t c = 0; c <= 0x10ffff; ++c) {
    if (c == 0xd800) c = 0xe000;
    visit(c);
  }
}

template <class Predicate>
void expect_class(const char* name, const Predicate& predicate) {
  std::vector<bool> expected(0x110000);
  const Json golden = read_golden("text-unicode.json");
  ASSERT_FALSE(golden["classes"][name].empty());
  for (const Json& range : golden["classes"][name]) {
    for (int c = range[0]; c <= range[1].get<int>(); ++c) expected[c] = true;
  }
  size_t wrong = 0;
  for_each_character([&](char32_t c) { wrong += predicate(char_class(c)) != expected[c]; });
  EXPECT_EQ(wrong, 0u) << name;
}

TEST(TextUnicode, ClassesOfEveryCharacterAreTheReferences) {
  expect_class("letter", [](CharClass c) { return c == CharClass::kLetter; });
  expect_class("number", is_number);
  expect_class("space", [](CharClass c) { return c == CharClass::kSpace; });
  expect_class("punctuation", is_punctuation);
  expect_class("word", is_word);
}

TEST(TextUnicode, NextLineIsSpaceAndByteOrderMarkIsNot) {
  EXPECT_EQ(char_class(0x85), CharClass::kSpace);
  EXPECT_NE(char_class(0xfeff), CharClass::kSpace);
}

TEST(TextUnicode, NfcOfEveryCharacterAndOfRandomSequencesIsTheReferences) {
  std::map<std::string, std::string> expected;
  const Json golden = read_golden("text-unicode.json");
  for (const Json& pair : golden["nfc"]) expected[pair[0]] = pair[1];
  EXPECT_GT(expected.size(), 2600u);
  for (const auto& [text, result] : expected) ASSERT_EQ(normalized(text), result) << Json(text).dump(-1, ' ', true);
  for_each_character([&](char32_t c) {
    const std::string text = utf8(c);
    const std::string_view result = expected.contains(text) ? expected[text] : text;
    ASSERT_EQ(normalized(text), result) << std::hex << uint32_t(c);
  });
}

TEST(TextUnicode, NfcComposesEveryHangulSyllable) {
  for (char32_t c = 0xac00; c <= 0xd7a3; ++c) {
    const char32_t index = c - 0xac00;
    const std::string jamo = utf8(0x1100 + index / 588) + utf8(0x1161 + index / 28 % 21) +
                             (index % 28 == 0 ? "" : utf8(0x11a7 + index % 28));
    ASSERT_EQ(normalized(jamo), utf8(c));
  }
}

TEST(TextUnicode, NfcLeavesNormalizedTextWhereItIs) {
  std::string buffer;
  const std::string_view text = "plain, naïve, Việt, 한국어, 你好";
  EXPECT_EQ(nfc(text, &buffer).data(), text.data());
  EXPECT_TRUE(nfc("", &buffer).empty());
}

TEST(TextUnicode, NfcSortsALongRunOfMarksInGoodTime) {
  std::string text = "a", grave, below;
  for (int i = 0; i < 200'000; ++i) {
    text += "\u0301\u0323";
    if (i > 0) below += "\u0323";
    grave += "\u0301";
  }
  EXPECT_EQ(normalized(text), "\u1ea1" + below + grave);
}

TEST(TextUnicode, ReadsWellFormedUtf8AndNamesWhatIsNot) {
  for_each_character([](char32_t c) {
    const Utf8Char read = read_utf8(utf8(c));
    ASSERT_TRUE(read.valid && read.code == c && read.length == utf8(c).size());
    ASSERT_EQ(read_valid_utf8(utf8(c).data()).code, c);
  });
  EXPECT_EQ(find_invalid_utf8("abc"), std::string_view::npos);
  EXPECT_EQ(find_invalid_utf8("a\xc0\xaf"), 1u);         // overlong
  EXPECT_EQ(find_invalid_utf8("ab\xed\xa0\x80"), 2u);    // a surrogate
  EXPECT_EQ(find_invalid_utf8("\xf4\x90\x80\x80"), 0u);  // beyond U+10FFFF
  EXPECT_EQ(find_invalid_utf8("é\xe4\xb8"), 2u);         // cut off
}

// The examples of the Unicode Standard, table 3-8 and its neighbours: one U+FFFD for each maximal subpart.
TEST(TextUnicode, ReplacesMaximalSubparts) {
  const auto lossy = [](std::string_view bytes) {
    std::string out;
    const size_t used = append_lossy_utf8(bytes, &out);
    return out + "|" + std::to_string(bytes.size() - used);
  };
  EXPECT_EQ(lossy("\xc0\xaf\xe0\x80\xbf\xf0\x81\x82\x41"), "\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffdA|0");
  EXPECT_EQ(lossy("\xed\xa0\x80\xed\xbf\xbf\xed\xaf\x41"), "\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffdA|0");
  EXPECT_EQ(lossy("\xf4\x91\x92\x93\xff\x41\x80\xbf\x42"), "\ufffd\ufffd\ufffd\ufffd\ufffdA\ufffd\ufffdB|0");
  EXPECT_EQ(lossy("\xe1\x80\xe2\xf0\x91\x92\xf1\xbf\x41"), "\ufffd\ufffd\ufffd\ufffdA|0");
  EXPECT_EQ(lossy("a\xf0\x9f\xab"), "a|3");
  EXPECT_EQ(lossy("a\xf0\x9f\xab\xa0"), "a\U0001fae0|0");
}

}  // namespace
}  // namespace qwasm::text_test
