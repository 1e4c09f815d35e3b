// exp, log, sin and cos in double, written in plain arithmetic: every build gives the same bits, which the C libraries do not promise.
#pragma once

#include <bit>
#include <cstdint>

namespace qwasm {

// Relative error below 1e-15 on [-700, 700]; outside, 0 or a very large number.
double exp_f64(double x);

// The same for x ≤ 0 (for x < -700 as for -700), with a relative error below 1e-14: inline and without branches or divisions, so that a loop
// over a vocabulary vectorizes. exp_f64 took eight times as long there.
inline double exp_not_above_1(double x) {
  x = x > -700 ? x : -700;
  // The whole number nearest to x / ln 2 stands in the low bits of this sum.
  const double shifted = x * 1.4426950408889634 + 0x1.8p52;
  const double n = shifted - 0x1.8p52;
  const double r = (x - n * 0x1.62e42feep-1) - n * 0x1.a39ef35793c76p-33;
  // Taylor's series in pairs of terms: half as long a chain as one by one.
  const double r2 = r * r;
  double sum = 1.0 / 39916800 * r + 1.0 / 3628800;
  sum = sum * r2 + (1.0 / 362880 * r + 1.0 / 40320);
  sum = sum * r2 + (1.0 / 5040 * r + 1.0 / 720);
  sum = sum * r2 + (1.0 / 120 * r + 1.0 / 24);
  sum = sum * r2 + (1.0 / 6 * r + 0.5);
  sum = sum * r2 + (r + 1);
  return std::bit_cast<double>(std::bit_cast<uint64_t>(sum) + (std::bit_cast<uint64_t>(shifted) << 52));
}

// Natural logarithm of a positive, normal x; relative error below 1e-15.
double log_f64(double x);

// base^exponent for base > 0.
inline double pow_f64(double base, double exponent) { return exp_f64(exponent * log_f64(base)); }

struct SinCos {
  double sin, cos;
};

// Absolute error below 1e-15 for |x| up to 2^26.
SinCos sincos_f64(double x);

}  // namespace qwasm
