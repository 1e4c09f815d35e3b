// The table of storage formats; decodes and checks them.
#include "core/quant/format.h"

#include <cstring>

#include "core/base/half.h"

namespace qwasm {

namespace {

template <float (*kDecode)(uint16_t)>
void decode_half(const void* elements, int64_t count, float* values) {
  const auto* bits = static_cast<const uint16_t*>(elements);
  for (int64_t i = 0; i < count; ++i) values[i] = kDecode(bits[i]);
}

// A value is NaN or infinite where all bits of its exponent are set. Looks at a run first without branches, so that it vectorizes.
template <typename Bits, Bits kExponent>
int64_t find_not_finite_float(const void* elements, int64_t count) {
  const auto* bits = static_cast<const Bits*>(elements);
  constexpr int64_t kRun = 256;
  for (int64_t begin = 0; begin < count; begin += kRun) {
    const int64_t end = begin + kRun < count ? begin + kRun : count;
    Bits found = 0;
    for (int64_t i = begin; i < end; ++i) found |= static_cast<Bits>((bits[i] & kExponent) == kExponent);
    if (!found) continue;
    for (int64_t i = begin; i < end; ++i) {
      if ((bits[i] & kExponent) == kExponent) return i;
    }
  }
  return -1;
}

constexpr FormatInfo kFormats[] = {
    {Format::kF32, Format::kF32, "F32", 0, 1, 4, 0, 0, nullptr},
    {Format::kF16, Format::kF16, "F16", 1, 1, 2, 0, 0, nullptr},
    {Format::kBF16, Format::kBF16, "BF16", 30, 1, 2, 0, 0, nullptr},
    {Format::kQ8_0, Format::kQ8, "Q8_0", 8, 32, 34, 0, 1, read_q8_0},
    {Format::kQ4_0, Format::kQ4, "Q4_0", 2, 32, 18, 0, 1, read_q4_0},
    {Format::kQ4_1, Format::kQ4M, "Q4_1", 3, 32, 20, 0, 2, read_q4_1},
    {Format::kQ5_0, Format::kQ8, "Q5_0", 6, 32, 22, 0, 1, read_q5_0},
    {Format::kQ5_1, Format::kQ8M, "Q5_1", 7, 32, 24, 0, 2, read_q5_1},
    {Format::kQ2_K, Format::kQ8M, "Q2_K", 10, 256, 84, 80, 2, read_q2_k},
    {Format::kQ3_K, Format::kQ8, "Q3_K", 11, 256, 110, 108, 1, read_q3_k},
    {Format::kQ4_K, Format::kQ4M, "Q4_K", 12, 256, 144, 0, 2, read_q4_k},
    {Format::kQ5_K, Format::kQ8M, "Q5_K", 13, 256, 176, 0, 2, read_q5_k},
    {Format::kQ6_K, Format::kQ8M, "Q6_K", 14, 256, 210, 208, 1, read_q6_k},
    {Format::kIQ4_NL, Format::kQ8, "IQ4_NL", 20, 32, 18, 0, 1, read_iq4_nl},
    {Format::kMXFP4, Format::kQ8M, "MXFP4", 39, 32, 17, 0, 0, read_mxfp4},
};

// From 2^125 on, MXFP4's largest value, 12, is beyond float32.
constexpr int kLargestExponent = 252;

bool has_finite_scales(const FormatInfo& info, const uint8_t* block) {
  if (info.format == Format::kMXFP4) return block[0] <= kLargestExponent;
  for (int i = 0; i < info.halves; ++i) {
    if ((block[info.halves_at + 2 * i + 1] & 0x7c) == 0x7c) return false;
  }
  return true;
}

}  // namespace

void FormatInfo::decode(const void* blocks, int64_t count, float* values) const {
  if (format == Format::kF32) std::memcpy(values, blocks, static_cast<size_t>(count) * sizeof(float));
  if (format == Format::kF16) decode_half<f16_to_f32>(blocks, count, values);
  if (format == Format::kBF16) decode_half<bf16_to_f32>(blocks, count, values);
  if (!read) return;
  const auto* block = static_cast<const uint8_t*>(blocks);
  for (int64_t at = 0; at < count; at += elements_per_block, block += bytes_per_block) {
    for (int part = 0; part < elements_per_block / 32; ++part, values += 32) {
      Codes codes;
      read(block, part, &codes);
      for (int half = 0; half < 2; ++half) {
        const float scale = codes.scale(half), minimum = codes.minimums[half];
        for (int i = 16 * half; i < 16 * half + 16; ++i) values[i] = scale * static_cast<float>(codes.values[i]) + minimum;
      }
    }
  }
}

int64_t FormatInfo::find_not_finite(const void* blocks, int64_t count) const {
  if (format == Format::kF32) return find_not_finite_float<uint32_t, 0x7f800000>(blocks, count);
  if (format == Format::kF16) return find_not_finite_float<uint16_t, 0x7c00>(blocks, count);
  if (format == Format::kBF16) return find_not_finite_float<uint16_t, 0x7f80>(blocks, count);
  const auto* block = static_cast<const uint8_t*>(blocks);
  for (int64_t at = 0; at < count; at += elements_per_block, block += bytes_per_block) {
    if (!has_finite_scales(*this, block)) return at;
  }
  return -1;
}

const FormatInfo& format_info(Format format) { return kFormats[static_cast<int>(format)]; }

const FormatInfo* find_format(std::string_view safetensors_name) {
  for (const FormatInfo& info : kFormats) {
    if (is_float(info.format) && safetensors_name == info.name) return &info;
  }
  return nullptr;
}

const FormatInfo* find_gguf_format(int64_t type) {
  for (const FormatInfo& info : kFormats) {
    if (type == info.gguf_type) return &info;
  }
  return nullptr;
}

}  // namespace qwasm
