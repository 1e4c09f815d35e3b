// The table of storage formats and their scalar decoders.
#include "core/quant/format.h"

#include <cstring>

#include "core/base/half.h"

namespace qwasm {

namespace {

void decode_f32(const void* blocks, int64_t count, float* values) {
  std::memcpy(values, blocks, static_cast<size_t>(count) * sizeof(float));
}

template <float (*kDecode)(uint16_t)>
void decode_half(const void* blocks, int64_t count, float* values) {
  const auto* bits = static_cast<const uint16_t*>(blocks);
  for (int64_t i = 0; i < count; ++i) values[i] = kDecode(bits[i]);
}

// A value is NaN or infinite where all bits of its exponent are set. Looks at a run first without branches, so that it vectorizes.
template <typename Bits, Bits kExponent>
int64_t find_not_finite(const void* blocks, int64_t count) {
  const auto* bits = static_cast<const Bits*>(blocks);
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
    {Format::kF32, "F32", 1, 4, decode_f32, find_not_finite<uint32_t, 0x7f800000>},
    {Format::kF16, "F16", 1, 2, decode_half<f16_to_f32>, find_not_finite<uint16_t, 0x7c00>},
    {Format::kBF16, "BF16", 1, 2, decode_half<bf16_to_f32>, find_not_finite<uint16_t, 0x7f80>},
};

}  // namespace

const FormatInfo& format_info(Format format) { return kFormats[static_cast<int>(format)]; }

const FormatInfo* find_format(std::string_view safetensors_name) {
  for (const FormatInfo& info : kFormats) {
    if (safetensors_name == info.name) return &info;
  }
  return nullptr;
}

}  // namespace qwasm
