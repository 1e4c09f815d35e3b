// Reads GGUF's block types. Blocks stand at any address; fields follow each other without gaps.
#include "core/quant/codes.h"

#include <bit>
#include <cstring>

#include "core/base/half.h"

namespace qwasm {

namespace {

float half_at(const uint8_t* p) { return f16_to_f32(static_cast<uint16_t>(p[0] | p[1] << 8)); }

void set_scale(Codes* codes, float scale) {
  codes->unit = scale;
  codes->factors[0] = codes->factors[1] = 1;
}

void set_minimum(Codes* codes, float minimum) { codes->minimums[0] = codes->minimums[1] = minimum; }

// 16 bytes: the first 16 values in the low halves, the others in the high ones.
[[gnu::noinline]] void split_nibbles(const uint8_t* bytes, int8_t* values) {
  for (int i = 0; i < 16; ++i) {
    values[i] = static_cast<int8_t>(bytes[i] & 15);
    values[16 + i] = static_cast<int8_t>(bytes[i] >> 4);
  }
}

// 32 bytes with a value each, of `bits` bits from bit `shift` on; they go to bit `to` of values that are 0 there.
[[gnu::noinline]] void add_bits(const uint8_t* bytes, int shift, int bits, int to, int8_t* values) {
  const int mask = (1 << bits) - 1;
  for (int i = 0; i < 32; ++i) values[i] = static_cast<int8_t>(values[i] | (bytes[i] >> shift & mask) << to);
}

void set_bits(const uint8_t* bytes, int shift, int bits, int8_t* values) {
  std::memset(values, 0, 32);
  add_bits(bytes, shift, bits, 0, values);
}

void shift_down(int8_t* values, int offset) {
  for (int i = 0; i < 32; ++i) values[i] = static_cast<int8_t>(values[i] - offset);
}

// The fifth bits of Q5_0 and Q5_1: one a value in four bytes.
[[gnu::noinline]] void add_fifth_bits(const uint8_t* bits, int8_t* values) {
  for (int i = 0; i < 32; ++i) values[i] = static_cast<int8_t>(values[i] | (bits[i / 8] >> i % 8 & 1) << 4);
}

// The low halves of bytes as places of a table.
[[gnu::noinline]] void look_up(const int8_t* table, int8_t* values) {
  for (int i = 0; i < 32; ++i) values[i] = table[values[i]];
}

// Scale and minimum of part 0 … 7 of Q4_K and Q5_K: float16 d, float16 dmin, then 6 bits each in 12 bytes. Parts 4 … 7 have their low bits
// in the last four bytes and their high bits above those of parts 0 … 3.
void set_k_scale(const uint8_t* block, int part, Codes* codes) {
  const uint8_t* packed = block + 4;
  const int low = part % 4;
  const int scale = part < 4 ? packed[low] & 63 : (packed[8 + low] & 15) | (packed[low] >> 6) << 4;
  const int minimum = part < 4 ? packed[4 + low] & 63 : packed[8 + low] >> 4 | (packed[4 + low] >> 6) << 4;
  codes->unit = half_at(block);
  codes->factors[0] = codes->factors[1] = static_cast<int8_t>(scale);
  set_minimum(codes, -(half_at(block + 2) * static_cast<float>(minimum)));
}

}  // namespace

// float16 d, 32 int8
void read_q8_0(const uint8_t* block, int, Codes* codes) {
  set_scale(codes, half_at(block));
  set_minimum(codes, -0.0f);
  std::memcpy(codes->values, block + 2, 32);
}

// float16 d, 16 bytes of halves: 0 … 15 for -8 … 7
void read_q4_0(const uint8_t* block, int, Codes* codes) {
  set_scale(codes, half_at(block));
  set_minimum(codes, -0.0f);
  split_nibbles(block + 2, codes->values);
  shift_down(codes->values, 8);
}

// float16 d, float16 minimum, 16 bytes of halves
void read_q4_1(const uint8_t* block, int, Codes* codes) {
  set_scale(codes, half_at(block));
  set_minimum(codes, half_at(block + 2));
  split_nibbles(block + 4, codes->values);
}

// float16 d, 4 bytes of fifth bits, 16 bytes of halves: 0 … 31 for -16 … 15
void read_q5_0(const uint8_t* block, int, Codes* codes) {
  set_scale(codes, half_at(block));
  set_minimum(codes, -0.0f);
  split_nibbles(block + 6, codes->values);
  add_fifth_bits(block + 2, codes->values);
  shift_down(codes->values, 16);
}

// float16 d, float16 minimum, 4 bytes of fifth bits, 16 bytes of halves
void read_q5_1(const uint8_t* block, int, Codes* codes) {
  set_scale(codes, half_at(block));
  set_minimum(codes, half_at(block + 2));
  split_nibbles(block + 8, codes->values);
  add_fifth_bits(block + 4, codes->values);
}

// 16 bytes with a scale in the low and a minimum in the high half, 64 bytes of quarters, float16 d, float16 dmin
void read_q2_k(const uint8_t* block, int part, Codes* codes) {
  codes->unit = half_at(block + 80);
  for (int half = 0; half < 2; ++half) {
    const int packed = block[2 * part + half];
    codes->factors[half] = static_cast<int8_t>(packed & 15);
    codes->minimums[half] = -(half_at(block + 82) * static_cast<float>(packed >> 4));
  }
  set_bits(block + 16 + part / 4 * 32, part % 4 * 2, 2, codes->values);
}

// 32 bytes of third bits (0: four less), 64 bytes of quarters, 16 scales of 6 bits in 12 bytes (low halves, then quarters), float16 d
void read_q3_k(const uint8_t* block, int part, Codes* codes) {
  const uint8_t* packed = block + 96;
  codes->unit = half_at(block + 108);
  set_minimum(codes, -0.0f);
  for (int half = 0; half < 2; ++half) {
    const int i = 2 * part + half;
    const int low = packed[i % 8] >> i / 8 * 4 & 15, high = packed[8 + i % 4] >> i / 4 * 2 & 3;
    codes->factors[half] = static_cast<int8_t>((low | high << 4) - 32);
  }
  set_bits(block + 32 + part / 4 * 32, part % 4 * 2, 2, codes->values);
  add_bits(block, part, 1, 2, codes->values);
  shift_down(codes->values, 4);
}

// float16 d, float16 dmin, 12 bytes of scales, 128 bytes of halves
void read_q4_k(const uint8_t* block, int part, Codes* codes) {
  set_k_scale(block, part, codes);
  set_bits(block + 16 + part / 2 * 32, part % 2 * 4, 4, codes->values);
}

// float16 d, float16 dmin, 12 bytes of scales, 32 bytes of fifth bits, 128 bytes of halves
void read_q5_k(const uint8_t* block, int part, Codes* codes) {
  set_k_scale(block, part, codes);
  set_bits(block + 48 + part / 2 * 32, part % 2 * 4, 4, codes->values);
  add_bits(block + 16, part, 1, 4, codes->values);
}

// 128 bytes of halves, 64 bytes of quarters above them, 16 int8 scales, float16 d: 0 … 63 for -32 … 31
void read_q6_k(const uint8_t* block, int part, Codes* codes) {
  codes->unit = half_at(block + 208);
  set_minimum(codes, -0.0f);
  std::memcpy(codes->factors, block + 192 + 2 * part, 2);
  const int chunk = part / 4, place = part % 4;
  set_bits(block + chunk * 64 + place % 2 * 32, place / 2 * 4, 4, codes->values);
  add_bits(block + 128 + chunk * 32, place * 2, 2, 4, codes->values);
  shift_down(codes->values, 32);
}

// float16 d, 16 bytes of halves: places in a table
void read_iq4_nl(const uint8_t* block, int, Codes* codes) {
  static constexpr int8_t kTable[] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
  set_scale(codes, half_at(block));
  set_minimum(codes, -0.0f);
  split_nibbles(block + 2, codes->values);
  look_up(kTable, codes->values);
}

// An exponent e, 16 bytes of halves: a sign, two bits of exponent and one of mantissa. The table has their values doubled, so the scale is
// 2^(e - 128).
void read_mxfp4(const uint8_t* block, int, Codes* codes) {
  static constexpr int8_t kTable[] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
  const uint32_t exponent = block[0];
  set_scale(codes, std::bit_cast<float>(exponent < 2 ? 0x00200000u << exponent : (exponent - 1) << 23));
  set_minimum(codes, -0.0f);
  split_nibbles(block + 1, codes->values);
  look_up(kTable, codes->values);
}

}  // namespace qwasm
