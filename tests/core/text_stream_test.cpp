// Streaming gives whole characters, never stalls, and adds up to the whole decode.
#include <random>

#include "core/text/stream_decoder.h"
#include "core/text/utf8.h"
#include "tests/core/text_test_support.h"

namespace qwasm::text_test {
namespace {

std::string streamed(const Tokenizer& tokenizer, std::span<const int32_t> ids, bool skip_special) {
  StreamDecoder decoder(tokenizer, skip_special);
  std::string sum;
  for (const int32_t id : ids) {
    const std::string_view piece = decoder.push(id);
    EXPECT_EQ(find_invalid_utf8(piece), std::string_view::npos);
    sum += piece;
  }
  sum += decoder.flush();
  EXPECT_EQ(decoder.flush(), "");
  return sum;
}

void expect_streams_as_whole(const Tokenizer& tokenizer, std::span<const int32_t> ids) {
  for (const bool skip_special : {false, true}) {
    ASSERT_EQ(streamed(tokenizer, ids, skip_special), tokenizer.decode(ids, skip_special));
  }
}

// The token that stands for one byte alone.
int32_t byte_token(const Tokenizer& tokenizer, uint8_t byte) {
  for (int32_t id = 0; id < 256; ++id) {
    std::string bytes;
    tokenizer.append_bytes(id, false, &bytes);
    if (bytes.size() == 1 && static_cast<uint8_t>(bytes[0]) == byte) return id;
  }
  ADD_FAILURE() << "no token for byte " << int(byte);
  return 0;
}

TEST(TextStream, EveryGoldenStreamsToItsWholeDecoding) {
  for (const Json& one : read_golden("qwen3-tokenizer.json")["cases"].get<std::vector<Json>>()) {
    expect_streams_as_whole(qwen3(), one["ids"].get<Ids>());
  }
  for (const Json& one : read_golden("demo-tokenizer.json")["cases"].get<std::vector<Json>>()) {
    expect_streams_as_whole(demo(), one["ids"].get<Ids>());
  }
}

TEST(TextStream, HoldsBackACharacterSplitOverTokens) {
  ASSERT_EQ(encode(qwen3(), "🫠"), (Ids{9284, 104, 254}));
  StreamDecoder decoder(qwen3(), true);
  EXPECT_EQ(decoder.push(9284), "");
  EXPECT_EQ(decoder.push(104), "");
  EXPECT_EQ(decoder.push(254), "🫠");
  EXPECT_EQ(decoder.flush(), "");
}

TEST(TextStream, ATruncatedTailComesOnceAtTheEnd) {
  StreamDecoder decoder(qwen3(), true);
  EXPECT_EQ(decoder.push(9284), "");
  EXPECT_EQ(decoder.flush(), "\ufffd");
  EXPECT_EQ(decoder.flush(), "");
  EXPECT_EQ(decoder.push(9707), "Hello");
}

TEST(TextStream, BytesThatAreInvalidComeAtOnce) {
  StreamDecoder decoder(qwen3(), true);
  EXPECT_EQ(decoder.push(byte_token(qwen3(), 0xff)), "\ufffd");
  EXPECT_EQ(decoder.push(byte_token(qwen3(), 0x80)), "\ufffd");
  EXPECT_EQ(decoder.push(9284), "");             // the beginning of a character …
  EXPECT_EQ(decoder.push(9707), "\ufffdHello");  // … that does not go on
}

TEST(TextStream, ASpecialTokenThatIsSkippedDoesNotBreakACharacter) {
  StreamDecoder decoder(qwen3(), true);
  std::string sum;
  for (const int32_t id : {9284, 151645, 104, 151700, 254}) sum += decoder.push(id);
  EXPECT_EQ(sum, "🫠");
  decoder.reset();
  EXPECT_EQ(decoder.push(9284), "");
  decoder.reset();
  EXPECT_EQ(decoder.flush(), "");
}

TEST(TextStream, RandomIdsStreamToTheirWholeDecoding) {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    Ids ids(random() % 60);
    for (int32_t& id : ids) {
      const uint32_t kind = random() % 8;
      id = kind < 5 ? int32_t(random() % 256) : kind < 7 ? int32_t(random() % 152'000) : int32_t(random());
    }
    expect_streams_as_whole(qwen3(), ids);
  }
}

// Every sequence of up to three bytes that matter: leads, continuations, bounds.
TEST(TextStream, EverySequenceOfBytesStreamsToItsWholeDecoding) {
  Ids tokens;
  for (const int byte : {0x41, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc1, 0xc2,
                         0xdf, 0xe0, 0xe1, 0xed, 0xef, 0xf0, 0xf1, 0xf4, 0xf5, 0xff}) {
    tokens.push_back(byte_token(demo(), static_cast<uint8_t>(byte)));
  }
  for (const int32_t a : tokens) {
    for (const int32_t b : tokens) {
      for (const int32_t c : tokens) {
        const Ids ids = {a, b, c, tokens[2]};
        ASSERT_EQ(streamed(demo(), ids, false), demo().decode(ids, false)) << a << ' ' << b << ' ' << c;
      }
    }
  }
}

}  // namespace
}  // namespace qwasm::text_test
