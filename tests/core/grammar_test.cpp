// Grammars: the notation and its errors, which bytes fit, which tokens are allowed, and which text is forced.
#include "core/sample/grammar.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/core/text_test_support.h"

namespace qwasm {
namespace {

// Tokens by id; no bytes for those that no grammar may use.
TokenTable table_of(const std::vector<std::string>& tokens) {
  std::string bytes;
  std::vector<uint32_t> ends;
  for (const std::string& token : tokens) {
    bytes += token;
    ends.push_back(static_cast<uint32_t>(bytes.size()));
  }
  return TokenTable(std::move(bytes), ends);
}

// Token 0 ends, 1 to 256 are all single bytes, and then there are `more`.
TokenTable bytes_and(const std::vector<std::string>& more) {
  std::vector<std::string> tokens(1);
  for (int byte = 0; byte < 256; ++byte) tokens.emplace_back(1, static_cast<char>(byte));
  tokens.insert(tokens.end(), more.begin(), more.end());
  return table_of(tokens);
}

const TokenTable kBytes = bytes_and({});
const std::vector<int64_t> kEnd = {0};

std::unique_ptr<Grammar> make(std::string_view gbnf, const TokenTable& tokens = kBytes, int64_t bits = 512) {
  std::unique_ptr<Grammar> grammar;
  const Status status = Grammar::make(gbnf, tokens, kEnd, bits, &grammar);
  EXPECT_TRUE(status.ok()) << status.message();
  return grammar;
}

std::string failure(std::string_view gbnf) {
  std::unique_ptr<Grammar> grammar;
  const Status status = Grammar::make(gbnf, kBytes, kEnd, 512, &grammar);
  EXPECT_EQ(status.code(), Code::kInvalidArgument) << gbnf;
  return status.message();
}

bool allows(GrammarMatcher& matcher, int32_t id) {
  const uint32_t* mask = nullptr;
  const Status status = matcher.mask(&mask);
  EXPECT_TRUE(status.ok()) << status.message();
  return status.ok() && (mask[id / 32] >> id % 32 & 1);
}

// Whether the grammar derives the text: it takes its bytes, and the end token may follow.
bool derives(const std::unique_ptr<Grammar>& grammar, std::string_view text) {
  GrammarMatcher matcher(*grammar);
  return matcher.accept(text) && allows(matcher, 0);
}

void expect_language(std::string_view gbnf, const std::vector<std::string>& in, const std::vector<std::string>& out) {
  const auto grammar = make(gbnf);
  for (const auto& text : in) EXPECT_TRUE(derives(grammar, text)) << gbnf << " should derive '" << text << "'";
  for (const auto& text : out) EXPECT_FALSE(derives(grammar, text)) << gbnf << " should not derive '" << text << "'";
}

TEST(Gbnf, HasLiteralsWithEscapes) {
  expect_language(R"(root ::= "a\"b\\\n\x41\u00e9\U0001F600")", {"a\"b\\\nAé😀"}, {"", "a", "a\"b\\\nAé"});
  expect_language(R"(root ::= "")", {""}, {"a"});
}

TEST(Gbnf, HasClassesWithRangesNegationAndEscapes) {
  expect_language(R"(root ::= [a-cx\]\-])", {"a", "c", "x", "]", "-"}, {"d", "", "ab"});
  expect_language(R"(root ::= [^"\\\x00-\x1F])", {"a", "é", "漢", "😀", "\x7f"}, {"\"", "\\", "\n", "\x1f", "ab", "\xff", "\xe6\xbc"});
  expect_language(R"(root ::= [à-ü])", {"à", "é", "ü"}, {"a", "ý", "ßa"});
  expect_language(R"(root ::= [\u0800-\U00010FFF])", {"ࠀ", "\xed\x9f\xbf", "\xee\x80\x80", "\xf0\x90\xbf\xbf"}, {"\xdf\xbf", "\xed\xa0\x80", "\xf0\x91\x80\x80"});
  expect_language("root ::= .", {"a", "\n", "\"", "漢"}, {"", "ab", "\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80"});
}

TEST(Gbnf, HasRepetitions) {
  expect_language(R"(root ::= "a"* "b"+ "c"?)", {"b", "aabb", "abc"}, {"a", "c", "abcc", "aba"});
  expect_language(R"(root ::= "a"{2} "b"{1,} "c"{1,3})", {"aabc", "aabbccc"}, {"abc", "aac", "aabcccc", "aaabc"});
  expect_language(R"(root ::= ("ab" | "c"){0,2} "a"{0,0} "d"{0})", {"", "ab", "cab", "abab", "cc"}, {"ababab", "a", "d"});
  expect_language(R"(root ::= ("a"* | "b") "c")", {"c", "aac", "bc"}, {"abc", "aabc", "bbc"});
  expect_language(R"(root ::= ("a"? "b"?)* "c")", {"c", "bac", "aabbac"}, {"d"});
  expect_language("root ::= [0-9]{1,40}", {"7", std::string(40, '7')}, {"", std::string(41, '7')});
}

TEST(Gbnf, HasAlternativesGroupsRulesAndComments) {
  expect_language("# a list\nroot ::= \"[\" (item (\",\" item)*)? \"]\" # of items\nitem ::= \"x\"\n  | \"yy\" |\n  root\n", {"[]", "[x]", "[x,yy,[x,[]]]"},
                  {"[", "[,]", "[x,]", "[y]", "[[]"});
  expect_language("root ::= a | b\na ::= \"1\" | \nb-2 ::= \"2\"\nb ::= b-2", {"", "1", "2"}, {"12"});
}

TEST(Gbnf, FollowsRecursionToAnyDepth) {
  const auto grammar = make("root ::= \"(\" root \")\" | \"x\"");
  const std::string deep = std::string(2000, '(') + "x" + std::string(2000, ')');
  EXPECT_TRUE(derives(grammar, deep));
  EXPECT_FALSE(derives(grammar, deep + ")"));
  EXPECT_FALSE(derives(grammar, deep.substr(1)));
  // What is recursive at the right end takes no stack, and what is ambiguous does not split for ever.
  expect_language(R"(root ::= "a" root | "a" "b"? root | "a")", {std::string(3000, 'a'), "aba"}, {"", "b"});
}

TEST(Gbnf, ErrorsNameLineAndWhatWasExpected) {
  EXPECT_EQ(failure("root ::= \"a\"\nb = \"c\""), "grammar, line 2: expected a literal, a character class, a group or the name of a rule, found '='");
  EXPECT_EQ(failure("root ::=\n\n  \"a"), "grammar, line 3: expected the literal's closing \", found the end");
  EXPECT_EQ(failure("root ::= [a-"), "grammar, line 1: expected the class's closing ], found the end");
  EXPECT_EQ(failure("root ::= \"a\")"), "grammar, line 1: expected | or a new rule, found ')'");
  EXPECT_EQ(failure("root ::= [z-a]"), "grammar, line 1: expected a range whose end is not before its beginning, found ']'");
  EXPECT_EQ(failure("root ::= []"), "grammar, line 1: expected a class that has a character, found the end");
  EXPECT_EQ(failure("root ::= (\"a\""), "grammar, line 1: expected | or ), found the end");
  EXPECT_EQ(failure("root ::= \"\\q\""), "grammar, line 1: expected an escape: one of n r t \\ \" [ ] - ^ x u U, found 'q'");
  EXPECT_EQ(failure("root ::= \"\\ud800\""), "grammar, line 1: expected the number of a Unicode character, found '0'");
  EXPECT_EQ(failure("root ::= \"a\"{3,2}"), "grammar, line 1: expected an upper bound that is not below the lower one, found '}'");
  EXPECT_EQ(failure("root ::= é"), "grammar, line 1: expected a literal, a character class, a group or the name of a rule, found 'é'");
  EXPECT_EQ(failure(""), "grammar, line 1: expected a rule 'root', found the end");
}

TEST(Gbnf, ErrorsNameRules) {
  EXPECT_EQ(failure("root ::= \"a\"\n  item"), "grammar, line 2: the rule 'item' is not defined");
  EXPECT_EQ(failure("root ::= \"a\"\nitem ::= \"b\""), "grammar, line 2: the rule 'item' is not used by root or by what root uses");
  EXPECT_EQ(failure("root ::= \"a\"\nroot ::= \"b\""), "grammar, line 2: the rule 'root' is defined twice");
  EXPECT_EQ(failure("root ::= \"a\" root"), "grammar, line 1: the rule 'root' can never end: each of its alternatives needs it again");
  EXPECT_EQ(failure("root ::= \"x\" list\nlist ::= list \",\" \"y\" | \"y\""), "grammar, line 2: the rule 'list' is left-recursive: it may begin with itself");
  EXPECT_EQ(failure("root ::= a\na ::= ws b | \"a\"\nws ::= \" \"*\nb ::= a \"b\""), "grammar, line 4: the rule 'b' is left-recursive: it may begin with itself");
}

TEST(Gbnf, IsBounded) {
  EXPECT_NE(failure("root ::= (((\"a\"{1000}){1000}){1000}){1000}").find("262144 edges"), std::string::npos);
  EXPECT_NE(failure("root ::= (((\"\"{1000}){1000}){1000}){1000}").find("262144 edges"), std::string::npos);
  EXPECT_NE(failure("root ::= \"a\"{99999999999}").find("262144 repetitions"), std::string::npos);
  EXPECT_NE(failure("root ::= " + std::string(5000, '(')).find("100 groups"), std::string::npos);
}

TEST(Gbnf, EveryPrefixOfAGrammarIsAGrammarOrAnError) {
  const std::string text = "root ::= (\"a\\x41\" | [^b-d\\]é]{1,3} . item?)* # end\nitem ::= \"😀\" root \"]\" | [\\u0041-\\U0001F600]+";
  for (size_t length = 0; length < text.size(); ++length) {
    const std::unique_ptr<char[]> exact(new char[length]);
    std::copy_n(text.data(), length, exact.get());
    GrammarGraph graph;
    const Status status = parse_grammar({exact.get(), length}, &graph);
    EXPECT_TRUE(status.ok() || status.code() == Code::kInvalidArgument);
  }
}

TEST(Mask, HasTokensThatCrossSymbolsAndPartsOfCharacters) {
  const TokenTable tokens = bytes_and({"\":", "a\":", "a\"x", "\xe6\xbc", "\xa2\"", "\xa2", "{\"a"});
  const auto grammar = make("root ::= \"{\" string \":\" [0-9]+ \"}\"\nstring ::= \"\\\"\" [^\"]* \"\\\"\"", tokens);
  GrammarMatcher matcher(*grammar);
  EXPECT_TRUE(allows(matcher, 1 + '{'));
  EXPECT_TRUE(allows(matcher, 263));  // {"a
  EXPECT_FALSE(allows(matcher, 257));
  ASSERT_TRUE(matcher.accept("{\""));
  EXPECT_TRUE(allows(matcher, 257));   // ends the string, and the colon after it
  EXPECT_TRUE(allows(matcher, 258));
  EXPECT_FALSE(allows(matcher, 259));  // after the string comes a colon
  EXPECT_TRUE(allows(matcher, 260));   // the beginning of 漢
  EXPECT_FALSE(allows(matcher, 261));
  ASSERT_TRUE(matcher.accept("\xe6\xbc"));
  EXPECT_TRUE(allows(matcher, 261));   // its end, and the string's
  EXPECT_TRUE(allows(matcher, 262));
  EXPECT_FALSE(allows(matcher, 1 + '"'));
}

TEST(Mask, HasEndTokensExactlyWhereTheGrammarMayEnd) {
  const auto grammar = make("root ::= [0-9]{1,2}");
  GrammarMatcher matcher(*grammar);
  EXPECT_FALSE(allows(matcher, 0));
  ASSERT_TRUE(matcher.accept("1"));
  EXPECT_TRUE(allows(matcher, 0));
  EXPECT_TRUE(allows(matcher, 1 + '5'));
  EXPECT_FALSE(matcher.is_complete());
  ASSERT_TRUE(matcher.accept("5"));
  EXPECT_TRUE(matcher.is_complete());
  EXPECT_TRUE(allows(matcher, 0));
  EXPECT_FALSE(allows(matcher, 1 + '5'));
  EXPECT_FALSE(matcher.accept("5"));
  EXPECT_TRUE(matcher.is_complete()) << "what did not fit must change nothing";
}

TEST(Mask, EqualsTryingEachTokenOfQwen3) {
  const Tokenizer& tokenizer = text_test::qwen3();
  std::vector<std::string> texts(static_cast<size_t>(tokenizer.id_limit()));
  for (int32_t id = 0; id < tokenizer.id_limit(); ++id) tokenizer.append_bytes(id, false, &texts[static_cast<size_t>(id)]);
  const TokenTable tokens = table_of(texts);
  const char* const string = R"(root ::= "{\"name\": \"" char{3,40} "\", \"size\": " ("small" | "large" | [0-9]{1,5}) "}"
char ::= [^"\\\x00-\x1F] | "\\" (["\\/bfnrt] | "u" [0-9a-f]{4}))";
  const auto grammar = make(string, tokens, tokenizer.id_limit());
  for (const std::string text : {"", "{\"na", "{\"name\": \"", "{\"name\": \"ab", "{\"name\": \"abc\xe6", "{\"name\": \"abc\\u0", "{\"name\": \"漢字かな交じり文、三十字まで続く長い長い名前である…\\n",
                                 "{\"name\": \"abc\", \"size\": "}) {
    GrammarMatcher matcher(*grammar);
    ASSERT_TRUE(matcher.accept(text)) << text;
    const uint32_t* mask = nullptr;
    ASSERT_TRUE(matcher.mask(&mask).ok());
    const std::vector<uint32_t> made(mask, mask + (tokenizer.id_limit() + 31) / 32);
    for (int32_t id = 1; id < tokenizer.id_limit(); id += 7) {
      const std::string& bytes = texts[static_cast<size_t>(id)];
      GrammarMatcher trial = matcher;
      ASSERT_EQ(made[static_cast<size_t>(id) / 32] >> id % 32 & 1, !bytes.empty() && trial.accept(bytes)) << "after '" << text << "' the token '" << bytes << "'";
    }
  }
}

TEST(Mask, StaysRightAfterItsStatesWereDropped) {
  // Each depth of brackets is a state of its own with a mask of its own: far more than are kept.
  const TokenTable tokens = bytes_and({"((", "))", "abc"});
  const auto grammar = make("root ::= \"(\" root \")\" | [a-z]+", tokens, 1 << 17);
  GrammarMatcher matcher(*grammar), other(*grammar);
  ASSERT_TRUE(other.accept("((abc"));
  for (int depth = 0; depth < 3000; ++depth) {
    ASSERT_TRUE(allows(matcher, 257));
    ASSERT_FALSE(allows(matcher, 258));
    ASSERT_TRUE(matcher.accept("("));
  }
  ASSERT_TRUE(matcher.accept("a"));
  for (int depth = 3000; depth > 0; --depth) {
    ASSERT_EQ(allows(matcher, 258), depth > 1);
    ASSERT_FALSE(matcher.is_complete());
    ASSERT_TRUE(matcher.accept(")"));
  }
  EXPECT_TRUE(matcher.is_complete());
  EXPECT_TRUE(allows(other, 258));
  EXPECT_TRUE(other.accept("))"));
  EXPECT_TRUE(other.is_complete());
}

TEST(Mask, FailsWhereTheVocabularyHasNoToken) {
  const TokenTable letters = table_of({"", "a", "b"});
  const auto grammar = make("root ::= \"ab\" [c-z]", letters, 3);
  GrammarMatcher matcher(*grammar);
  EXPECT_TRUE(allows(matcher, 1));
  ASSERT_TRUE(matcher.accept("ab"));
  const uint32_t* mask = nullptr;
  const Status status = matcher.mask(&mask);
  EXPECT_EQ(status.code(), Code::kUnsupported);
  EXPECT_EQ(status.message(), "grammar: no token of the vocabulary can follow 'ab'");
}

TEST(Mask, OfAHopelesslyAmbiguousGrammarIsAnError) {
  // Which of the a's were brackets is not told before the end, so the stacks double with each.
  const auto grammar = make("root ::= \"a\" root \"b\" | \"a\" root \"c\" | \"a\" root | \"d\"");
  GrammarMatcher matcher(*grammar);
  bool ended = false;
  for (int i = 0; i < 60 && !ended; ++i) {
    const uint32_t* mask = nullptr;
    ended = !matcher.accept("a") || !matcher.mask(&mask).ok();
  }
  const uint32_t* mask = nullptr;
  EXPECT_EQ(matcher.mask(&mask).code(), Code::kUnsupported);
}

TEST(Forced, IsWhatAloneCanFollow) {
  const auto grammar = make("root ::= \"{\\\"name\\\": \" (\"true\" | \"tree\") \"}\" | \"{\\\"name\\\": 1}\"");
  GrammarMatcher matcher(*grammar);
  bool complete = true;
  EXPECT_EQ(matcher.forced(&complete), "{\"name\": ");
  EXPECT_FALSE(complete);
  ASSERT_TRUE(matcher.accept("{\"name\": t"));
  EXPECT_EQ(matcher.forced(&complete), "r");
  EXPECT_FALSE(complete);
  ASSERT_TRUE(matcher.accept("re"));
  EXPECT_EQ(matcher.forced(&complete), "e}");
  EXPECT_TRUE(complete);
}

TEST(Forced, EndsWhereTheTextMayEnd) {
  const auto grammar = make("root ::= \"a\" (\"bc\" \"d\"?)?");
  GrammarMatcher matcher(*grammar);
  bool complete = true;
  EXPECT_EQ(matcher.forced(&complete), "a");
  EXPECT_FALSE(complete);
  ASSERT_TRUE(matcher.accept("ab"));
  EXPECT_EQ(matcher.forced(&complete), "c");
  EXPECT_FALSE(complete);
}

}  // namespace
}  // namespace qwasm
