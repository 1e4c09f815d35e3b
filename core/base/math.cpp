// exp, log, sin and cos from Taylor series after an exact argument reduction (Cody and Waite, 1980).
#include "core/base/math.h"

#include <bit>

namespace qwasm {

namespace {

// Adding and subtracting 1.5 · 2^52 rounds to the nearest whole number, ties to even, for |x| < 2^51.
double round_to_whole(double x) {
  const double magic = 0x1.8p52;
  return (x + magic) - magic;
}

double power_of_two(int exponent) { return std::bit_cast<double>(static_cast<uint64_t>(exponent + 1023) << 52); }

}  // namespace

double exp_f64(double x) {
  if (!(x > -700)) return 0;
  if (x > 700) x = 700;
  const double n = round_to_whole(x * 1.4426950408889634);
  const double r = (x - n * 0x1.62e42feep-1) - n * 0x1.a39ef35793c76p-33;  // ln 2 in two parts; the first has 32 bits
  double sum = 1;
  for (int k = 14; k >= 1; --k) sum = 1 + sum * r / k;
  return sum * power_of_two(static_cast<int>(n));
}

double log_f64(double x) {
  const uint64_t bits = std::bit_cast<uint64_t>(x);
  int exponent = static_cast<int>(bits >> 52) - 1023;
  double m = std::bit_cast<double>((bits & 0x000fffffffffffffu) | 0x3ff0000000000000u);  // 1 ≤ m < 2
  if (m > 1.4142135623730951) {
    m *= 0.5;
    ++exponent;
  }
  // log m = 2 atanh(s), s = (m - 1) / (m + 1), |s| < 0.1716
  const double s = (m - 1) / (m + 1), s2 = s * s;
  double sum = 0;
  for (int k = 23; k >= 1; k -= 2) sum = sum * s2 + 1.0 / k;
  return exponent * 0x1.a39ef35793c76p-33 + 2 * s * sum + exponent * 0x1.62e42feep-1;
}

SinCos sincos_f64(double x) {
  const double n = round_to_whole(x * 0.6366197723675814);
  // π/2 in three parts; n times the first two, of 27 bits each, is exact for |n| up to 2^26.
  const double r = ((x - n * 0x1.921fb54p+0) - n * 0x1.10b461p-30) - n * 0x1.a62633145c06ep-58;
  const double r2 = r * r;
  double s = 1, c = 1;
  for (int k = 18; k >= 2; k -= 2) {
    s = 1 - s * r2 / (k * (k + 1));
    c = 1 - c * r2 / (k * (k - 1));
  }
  s *= r;
  switch (static_cast<int64_t>(n) & 3) {
    case 0: return {s, c};
    case 1: return {c, -s};
    case 2: return {-s, -c};
    default: return {-c, s};
  }
}

}  // namespace qwasm
