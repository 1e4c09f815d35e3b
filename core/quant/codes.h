// GGUF's block types as what they all are: small whole numbers with scales and minimums. The readers are their specification; they give
// what `gguf` for Python decodes, bit for bit.
#pragma once

#include <cstdint>

namespace qwasm {

// 32 weights of a row: weight i = scale(i / 16) · values[i] + minimums[i / 16].
struct Codes {
  int8_t values[32];
  float unit;            // a scale is this times a small whole number,
  int8_t factors[2];     // for the first and for the last 16 weights
  float minimums[2];     // -0 where a type has none: adding that changes nothing, not even a zero's sign

  float scale(int half) const { return unit * static_cast<float>(factors[half]); }
};

// Reads the weights 32 · part … 32 · part + 31 of a block.
using ReadCodes = void (*)(const uint8_t* block, int part, Codes* codes);

void read_q8_0(const uint8_t* block, int part, Codes* codes);
void read_q4_0(const uint8_t* block, int part, Codes* codes);
void read_q4_1(const uint8_t* block, int part, Codes* codes);
void read_q5_0(const uint8_t* block, int part, Codes* codes);
void read_q5_1(const uint8_t* block, int part, Codes* codes);
void read_q2_k(const uint8_t* block, int part, Codes* codes);
void read_q3_k(const uint8_t* block, int part, Codes* codes);
void read_q4_k(const uint8_t* block, int part, Codes* codes);
void read_q5_k(const uint8_t* block, int part, Codes* codes);
void read_q6_k(const uint8_t* block, int part, Codes* codes);
void read_iq4_nl(const uint8_t* block, int part, Codes* codes);
void read_mxfp4(const uint8_t* block, int part, Codes* codes);

}  // namespace qwasm
