// The parser of GGUF headers: what it reads of a right file, and what it says of every wrong one.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>

#include "core/files/gguf.h"
#include "gguf_support.h"

namespace qwasm {
namespace {

using gguf_test::File;
using gguf_test::number;
using gguf_test::text;

struct Parsed {
  Status status;
  GgufHeader header;
  int64_t needed = 0;
  std::unique_ptr<char[]> bytes;  // exactly what was parsed, so that AddressSanitizer sees a read beyond it
};

Parsed parse(const std::string& file, size_t length, int64_t file_size) {
  Parsed parsed;
  parsed.bytes.reset(new char[length]);
  if (length > 0) std::memcpy(parsed.bytes.get(), file.data(), length);
  parsed.status = parse_gguf_header({parsed.bytes.get(), length}, "m.gguf", file_size, &parsed.header, &parsed.needed);
  return parsed;
}
Parsed parse(const File& file) {
  const std::string bytes = file.bytes();
  return parse(bytes, bytes.size(), static_cast<int64_t>(bytes.size()));
}

File valid() {
  File file;
  file.add("general.architecture", "qwen3").add("qwen3.block_count", 2u).add_texts("tokenizer.ggml.tokens", {"a", "", "bc"});
  file.add("qwen3.rope.freq_base", gguf_test::kF32, number(1e6f)).add("flag", gguf_test::kBool, number(uint8_t{1}));
  file.add_array("types", gguf_test::kI32, 2, number(int32_t{1}) + number(int32_t{-3}));
  file.tensors = {{"b", {64, 3}, gguf_test::kStoredQ8_0, 32}, {"a", {8}, gguf_test::kStoredF32, 0}};
  file.data_bytes = 32 + 3 * 68;
  return file;
}

// The file is refused with this code, and the sentence names it and holds `words`.
void expect_refused(const File& file, Code code, const std::string& words) {
  const Parsed parsed = parse(file);
  EXPECT_EQ(parsed.status.code(), code) << parsed.status.message();
  EXPECT_EQ(parsed.needed, 0);
  EXPECT_NE(parsed.status.message().find("m.gguf: "), std::string::npos) << parsed.status.message();
  EXPECT_NE(parsed.status.message().find(words), std::string::npos) << parsed.status.message();
}

File with_tensors(std::vector<gguf_test::Tensor> tensors, size_t data_bytes = 4096) {
  File file;
  file.tensors = std::move(tensors);
  file.data_bytes = data_bytes;
  return file;
}

TEST(GgufHeader, ReadsMetadataOfEveryType) {
  const Parsed parsed = parse(valid());
  ASSERT_TRUE(parsed.status.ok()) << parsed.status.message();
  const GgufMetadata& metadata = parsed.header.metadata;
  std::string_view architecture;
  ASSERT_TRUE(metadata.text("m", "general.architecture", &architecture).ok());
  EXPECT_EQ(architecture, "qwen3");
  int64_t layers = 0;
  ASSERT_TRUE(metadata.integer("m", "qwen3.block_count", &layers).ok());
  EXPECT_EQ(layers, 2);
  bool flag = false;
  ASSERT_TRUE(metadata.boolean("m", "flag", &flag).ok());
  EXPECT_TRUE(flag);
  PackedStrings tokens;
  ASSERT_TRUE(metadata.strings("m", "tokenizer.ggml.tokens", &tokens).ok());
  ASSERT_EQ(tokens.count, 3u);
  EXPECT_EQ(tokens.next(), "a");
  EXPECT_EQ(tokens.next(), "");
  EXPECT_EQ(tokens.next(), "bc");
  EXPECT_EQ(to_text(gguf_json(*metadata.find("qwen3.rope.freq_base"))), "1000000.0");
  EXPECT_EQ(to_text(gguf_json(*metadata.find("types"))), "[1,-3]");
  EXPECT_EQ(metadata.find("absent"), nullptr);
}

TEST(GgufHeader, ReadsTensorsInTheOrderOfTheirDataWithRowMajorShapes) {
  const File file = valid();
  const Parsed parsed = parse(file);
  ASSERT_EQ(parsed.header.tensors.size(), 2u);
  const auto& [first, a] = parsed.header.tensors[0];
  const auto& [second, b] = parsed.header.tensors[1];
  EXPECT_EQ(first, "a");
  EXPECT_EQ(second, "b");
  EXPECT_EQ(b.shape, (std::vector<int64_t>{3, 64}));
  EXPECT_EQ(b.dtype, "Q8_0");
  EXPECT_EQ(b.end - b.begin, 3 * 68);
  EXPECT_EQ(b.begin - a.begin, 32);
  EXPECT_EQ(static_cast<size_t>(a.begin), (file.header().size() + 31) / 32 * 32);
}

TEST(GgufHeader, VersionTwoIsTheSameAndOthersAreRefused) {
  File file = valid();
  file.version = 2;
  EXPECT_TRUE(parse(file).status.ok());
  file.version = 1;
  expect_refused(file, Code::kUnsupported, "version 1");
  file.version = 3u << 24;
  expect_refused(file, Code::kUnsupported, "big-endian one of version 3");
  file.magic = "GGML";
  expect_refused(file, Code::kInvalidFile, "GGML");
}

// A file that ends anywhere is refused; a beginning that ends anywhere inside the header asks for more, and never for what cannot be.
TEST(GgufHeader, EveryTruncationIsAnErrorAndEveryBeginningAsksForMore) {
  const File file = valid();
  const std::string bytes = file.bytes();
  const size_t header = file.header().size();
  for (size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_EQ(parse(bytes, length, static_cast<int64_t>(length)).status.code(), Code::kInvalidFile) << length;
    for (const int64_t file_size : {int64_t{-1}, static_cast<int64_t>(bytes.size())}) {
      const Parsed beginning = parse(bytes, length, file_size);
      EXPECT_TRUE(beginning.status.ok()) << length << ": " << beginning.status.message();
      if (length < header) {
        EXPECT_GT(beginning.needed, static_cast<int64_t>(length));
        EXPECT_LE(beginning.needed, static_cast<int64_t>(header));
      } else {
        EXPECT_EQ(beginning.needed, 0);
      }
    }
  }
}

TEST(GgufHeader, AbsurdCountsAndLengthsAreRefusedBeforeAnythingIsMade) {
  for (const uint64_t absurd : {uint64_t{1} << 17, uint64_t{1} << 40, UINT64_MAX - 1}) {
    File file = valid();
    file.tensor_count = absurd;
    expect_refused(file, Code::kInvalidFile, "tensors");
    file = valid();
    file.entry_count = absurd;
    expect_refused(file, Code::kInvalidFile, "metadata entries");
    for (const uint32_t element : {gguf_test::kU8, gguf_test::kString, gguf_test::kF64}) {
      expect_refused(File().add_array("list", element, absurd, "few bytes"), Code::kInvalidFile, "\"list\"");
    }
    expect_refused(File().add("key", gguf_test::kString, number(absurd) + "short"), Code::kInvalidFile, "\"key\"");
    File key;
    key.entries = {number(absurd) + "key"};
    expect_refused(key, Code::kInvalidFile, "metadata key");
  }
}

TEST(GgufHeader, AnAbsurdLengthIsRefusedWithoutKnowingTheFilesSizeToo) {
  const std::string bytes = File().add("key", gguf_test::kString, number(uint64_t{1} << 40)).bytes();
  EXPECT_EQ(parse(bytes, bytes.size(), -1).status.code(), Code::kInvalidFile);
}

TEST(GgufHeader, TypesThatAreNoneAndNestedArraysAreRefused) {
  expect_refused(File().add("key", 13, "12345678"), Code::kInvalidFile, "type 13");
  expect_refused(File().add_array("key", 99, 1, "1"), Code::kInvalidFile, "type 99");
  expect_refused(File().add_array("key", gguf_test::kArray, 1, number(uint32_t{0}) + number(uint64_t{0})), Code::kUnsupported, "arrays of arrays");
}

TEST(GgufHeader, AKeyThatStandsTwiceIsRefused) { expect_refused(File().add("key", 1u).add("other", 1u).add("key", 2u), Code::kInvalidFile, "\"key\" stands twice"); }

TEST(GgufHeader, ValuesOfAnotherTypeAreRefusedByName) {
  const Parsed parsed = parse(valid());
  const GgufMetadata& metadata = parsed.header.metadata;
  std::string_view words;
  int64_t whole = 7;
  bool flag = false;
  PackedStrings strings;
  const auto expect_wrong = [](const Status& status, const std::string& expected) {
    EXPECT_EQ(status.code(), Code::kInvalidFile);
    EXPECT_NE(status.message().find(expected), std::string::npos) << status.message();
  };
  expect_wrong(metadata.text("m", "qwen3.block_count", &words), "m: qwen3.block_count: expected a string, found the uint32 2");
  expect_wrong(metadata.integer("m", "qwen3.rope.freq_base", &whole), "found the float32 1000000.0");
  expect_wrong(metadata.integer("m", "general.architecture", &whole), "found the string \"qwen3\"");
  expect_wrong(metadata.boolean("m", "qwen3.block_count", &flag), "expected a bool");
  expect_wrong(metadata.strings("m", "types", &strings), "found an array of int32");
  EXPECT_TRUE(metadata.integer("m", "absent", &whole).ok());
  EXPECT_EQ(whole, 7);
}

TEST(GgufHeader, TensorsOutOfBoundsAreRefused) {
  using gguf_test::kStoredF32;
  expect_refused(with_tensors({{"t", {}, kStoredF32, 0}}), Code::kInvalidFile, "found 0");
  expect_refused(with_tensors({{"t", {1, 1, 1, 1, 1}, kStoredF32, 0}}), Code::kInvalidFile, "found 5");
  expect_refused(with_tensors({{"t", {0}, kStoredF32, 0}}), Code::kInvalidFile, "extent of 0");
  expect_refused(with_tensors({{"t", {UINT64_MAX}, kStoredF32, 0}}), Code::kInvalidFile, "out of bounds");
  expect_refused(with_tensors({{"t", {uint64_t{1} << 32, uint64_t{1} << 32}, kStoredF32, 0}}), Code::kInvalidFile, "out of bounds");
  expect_refused(with_tensors({{"t", {8}, kStoredF32, UINT64_MAX - 31}}), Code::kInvalidFile, "offset");
  expect_refused(with_tensors({{"t", {1025}, kStoredF32, 0}}), Code::kInvalidFile, "past the end");
  expect_refused(with_tensors({{"t", {8}, kStoredF32, 4096}}), Code::kInvalidFile, "past the end");
  expect_refused(with_tensors({{"t", {33}, gguf_test::kStoredQ4_0, 0}}), Code::kInvalidFile, "multiple of 32");
  expect_refused(with_tensors({{"t", {8}, 4, 0}}), Code::kUnsupported, "storage type 4");
  expect_refused(with_tensors({{"t", {256}, gguf_test::kStoredIQ2_XS, 0}}), Code::kUnsupported, "storage type IQ2_XS");
}

TEST(GgufHeader, TensorsThatOverlapOrStandAskewAreRefused) {
  expect_refused(with_tensors({{"a", {16}, 0, 0}, {"b", {8}, 0, 32}}), Code::kInvalidFile, "\"b\": overlaps");
  expect_refused(with_tensors({{"a", {8}, 0, 0}, {"b", {8}, 0, 0}}), Code::kInvalidFile, "overlaps");
  expect_refused(with_tensors({{"a", {8}, 0, 4}}), Code::kInvalidFile, "multiple of 32");
  EXPECT_TRUE(parse(with_tensors({{"a", {8}, 0, 64}, {"b", {8}, 0, 0}})).status.ok()) << "gaps are allowed";
}

TEST(GgufHeader, AlignmentIsAPowerOfTwo) {
  for (const uint32_t wrong : {0u, 3u, 48u, 1u << 21, UINT32_MAX}) {
    expect_refused(with_tensors({{"a", {8}, 0, 0}}).add("general.alignment", wrong), Code::kInvalidFile, "general.alignment");
  }
  expect_refused(File().add("general.alignment", "32"), Code::kInvalidFile, "general.alignment");
  File file = with_tensors({{"a", {8}, 0, 0}});
  file.alignment = 128;
  const Parsed parsed = parse(file.add("general.alignment", 128u));
  ASSERT_TRUE(parsed.status.ok()) << parsed.status.message();
  EXPECT_EQ(parsed.header.tensors[0].second.begin % 128, 0);
}

TEST(GgufSplit, TellsAPartAndRefusesOneThatCannotBe) {
  const auto split_of = [](uint32_t number, uint32_t count, GgufSplit* split) {
    const Parsed parsed = parse(File().add("split.no", number).add("split.count", count));
    return read_gguf_split(parsed.header.metadata, "m.gguf", split);
  };
  GgufSplit split;
  ASSERT_TRUE(split_of(1, 3, &split).ok());
  EXPECT_EQ(split.number, 1);
  EXPECT_EQ(split.count, 3);
  EXPECT_EQ(split.tensors, -1);
  EXPECT_EQ(split_of(3, 3, &split).code(), Code::kInvalidFile);
  EXPECT_EQ(split_of(0, 1u << 31, &split).code(), Code::kInvalidFile);
  ASSERT_TRUE(split_of(0, 0, &split).ok());
  EXPECT_EQ(split.count, 1);
}

TEST(GgufSplit, NamesThePartsByAnyOfThem) {
  EXPECT_EQ(gguf_part_name("a/m-00002-of-00003.gguf", 0, 3), "a/m-00001-of-00003.gguf");
  EXPECT_EQ(gguf_part_name("m-00002-of-00003.gguf", 2, 3), "m-00003-of-00003.gguf");
  EXPECT_EQ(gguf_part_name("m-00002-of-00003.gguf", 0, 4), "");
  EXPECT_EQ(gguf_part_name("m-00004-of-00003.gguf", 0, 3), "");
  EXPECT_EQ(gguf_part_name("m.gguf", 0, 3), "");
  EXPECT_EQ(gguf_part_name("", 0, 3), "");
}

}  // namespace
}  // namespace qwasm
