// The storage types of GGUF: what they decode to against `gguf` for Python, and the panels that hold the same values.
#include "core/quant/format.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <set>

#include "core/base/rng.h"
#include "core/quant/panel.h"
#include "tests/core/small_model.h"

namespace qwasm {
namespace {

using capi_test::Bytes;
using capi_test::Floats;

constexpr Format kFloats[] = {Format::kF32, Format::kF16, Format::kBF16};
constexpr Format kBlockTypes[] = {Format::kQ8_0, Format::kQ4_0, Format::kQ4_1, Format::kQ5_0, Format::kQ5_1,   Format::kQ2_K,
                                  Format::kQ3_K, Format::kQ4_K, Format::kQ5_K, Format::kQ6_K, Format::kIQ4_NL, Format::kMXFP4};

const std::map<std::string, capi_test::Tensor>& golden() {
  static const auto tensors = capi_test::read_safetensors(capi_test::read_file("tests/golden/gguf-types/golden.safetensors"));
  return tensors;
}

Bytes golden_blocks(const FormatInfo& info) { return golden().at(std::string(info.name) + ".blocks").data; }

int64_t elements_of(const FormatInfo& info, const Bytes& blocks) { return static_cast<int64_t>(blocks.size()) / info.bytes_per_block * info.elements_per_block; }

Floats decode(const FormatInfo& info, const Bytes& blocks) {
  Floats values(static_cast<size_t>(elements_of(info, blocks)), std::nanf(""));
  info.decode(blocks.data(), static_cast<int64_t>(values.size()), values.data());
  return values;
}

void expect_same_bits(const Floats& found, const Floats& expected, const char* name) {
  ASSERT_EQ(found.size(), expected.size()) << name;
  for (size_t i = 0; i < found.size(); ++i) ASSERT_EQ(std::bit_cast<uint32_t>(found[i]), std::bit_cast<uint32_t>(expected[i])) << name << " at " << i << ": " << found[i] << ", " << expected[i];
}

TEST(Formats, DecodeToTheBitsOfGgufForPython) {
  const auto check = [](Format format) {
    const FormatInfo& info = format_info(format);
    ASSERT_EQ(info.format, format);
    expect_same_bits(decode(info, golden_blocks(info)), capi_test::floats_of(golden().at(std::string(info.name) + ".values")), info.name);
  };
  for (const Format format : kFloats) check(format);
  for (const Format format : kBlockTypes) check(format);
  EXPECT_EQ(golden().size(), 2 * (std::size(kFloats) + std::size(kBlockTypes))) << "a type of the golden file is not tested";
}

TEST(Formats, AreFoundByTheirTypeInGgufAndOnlyFloatsByNameInSafetensors) {
  const std::map<int, const char*> types = {{0, "F32"},   {1, "F16"},   {2, "Q4_0"},  {3, "Q4_1"},  {6, "Q5_0"},    {7, "Q5_1"},  {8, "Q8_0"},  {10, "Q2_K"},
                                            {11, "Q3_K"}, {12, "Q4_K"}, {13, "Q5_K"}, {14, "Q6_K"}, {20, "IQ4_NL"}, {30, "BF16"}, {39, "MXFP4"}};
  for (int type = -1; type < 64; ++type) {
    const FormatInfo* info = find_gguf_format(type);
    ASSERT_EQ(info != nullptr, types.contains(type)) << type;
    if (!info) continue;
    EXPECT_STREQ(info->name, types.at(type));
    EXPECT_EQ(find_format(info->name), is_float(info->format) ? info : nullptr) << info->name;
  }
}

// Whole bytes, so that no loop may read a block's end as the next one's beginning: each block alone in its allocation.
TEST(Formats, DecodeEachBlockWithoutLookingAtItsNeighbours) {
  for (const Format format : kBlockTypes) {
    const FormatInfo& info = format_info(format);
    const Bytes all = golden_blocks(info);
    const Floats expected = decode(info, all);
    Floats found;
    for (size_t at = 0; at < all.size(); at += static_cast<size_t>(info.bytes_per_block)) {
      const auto begin = all.begin() + static_cast<int64_t>(at);
      const Floats values = decode(info, Bytes(begin, begin + info.bytes_per_block));
      found.insert(found.end(), values.begin(), values.end());
    }
    expect_same_bits(found, expected, info.name);
  }
}

TEST(Formats, FindTheFirstBlockWhoseScalesAreNotFinite) {
  for (const Format format : kBlockTypes) {
    const FormatInfo& info = format_info(format);
    const Bytes good = golden_blocks(info);
    const int64_t count = elements_of(info, good);
    ASSERT_EQ(info.find_not_finite(good.data(), count), -1) << info.name;
    // An infinite scale, and one of NaN; MXFP4's exponent reaches beyond float32 instead.
    std::vector<std::pair<int, Bytes>> broken;
    for (int i = 0; i < info.halves; ++i) broken.insert(broken.end(), {{info.halves_at + 2 * i, {0x00, 0xfc}}, {info.halves_at + 2 * i, {0x01, 0x7c}}});
    if (format == Format::kMXFP4) broken = {{0, {253}}, {0, {255}}};
    for (const auto& [place, bytes] : broken) {
      Bytes blocks = good;
      std::copy(bytes.begin(), bytes.end(), blocks.begin() + 2 * info.bytes_per_block + place);
      EXPECT_EQ(info.find_not_finite(blocks.data(), count), 2 * info.elements_per_block) << info.name;
      EXPECT_EQ(info.find_not_finite(blocks.data(), 2 * info.elements_per_block), -1) << info.name;
    }
  }
}

// `rows` rows of the golden blocks, one after the other and again from the first.
Bytes rows_of(const FormatInfo& info, int64_t rows, int64_t columns) {
  const Bytes all = golden_blocks(info);
  Bytes bytes(static_cast<size_t>(bytes_of(info.format, rows * columns)));
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = all[i % all.size()];
  return bytes;
}

TEST(Pack, KeepsEveryValueOfEveryType) {
  for (const Format format : kBlockTypes) {
    const FormatInfo& info = format_info(format);
    const int64_t columns = std::max(info.elements_per_block, 64);
    for (const int64_t rows : {1, 3, 8}) {
      const Bytes bytes = rows_of(info, rows, columns);
      const Floats expected = decode(info, bytes);
      const size_t size = static_cast<size_t>(panel_bytes(info.panel, columns));
      const std::unique_ptr<uint8_t[]> panel(new uint8_t[size]);
      std::memset(panel.get(), 0xee, size);
      pack_panel(info, bytes.data(), rows, columns, panel.get());
      for (int64_t r = 0; r < kPanelRows; ++r) {
        Floats row(static_cast<size_t>(columns), std::nanf(""));
        decode_panel_row(info.panel, panel.get(), r, columns, row.data());
        for (int64_t i = 0; i < columns; ++i) {
          ASSERT_EQ(row[static_cast<size_t>(i)], r < rows ? expected[static_cast<size_t>(r * columns + i)] : 0) << info.name << ", row " << r << ", column " << i;
        }
      }
    }
  }
}

TEST(Pack, KeepsQ3KsLargestProductWhichInt8DoesNotHold) {
  const FormatInfo& info = format_info(Format::kQ3_K);
  Bytes block(110, 0);  // scales 0 … stand for -32, third bits 0 for four less: values of -32 · -4 = 128
  block[108] = 0x00, block[109] = 0x3c;
  std::vector<uint8_t> panel(static_cast<size_t>(panel_bytes(Format::kQ8, 256)));
  pack_panel(info, block.data(), 1, 256, panel.data());
  Floats row(256);
  decode_panel_row(Format::kQ8, panel.data(), 0, 256, row.data());
  EXPECT_EQ(row, Floats(256, 128.0f));
}

}  // namespace
}  // namespace qwasm
