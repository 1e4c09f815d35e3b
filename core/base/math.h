// exp, log, sin and cos in double, written in plain arithmetic: every build gives the same bits, which the C libraries do not promise.
#pragma once

#include <cstdint>

namespace qwasm {

// Relative error below 1e-15 on [-700, 700]; outside, 0 or a very large number.
double exp_f64(double x);

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
