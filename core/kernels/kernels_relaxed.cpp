// The kernels over 128-bit wasm SIMD with q4's products by relaxed SIMD, in two forms. What does not multiply q4 is that of kernels_simd.cpp.
#include "core/kernels/kernels.h"
#include "core/kernels/lanes_relaxed.h"

#define QWASM_LANES lanes_relaxed
#include "core/kernels/panel_algorithms.inc"
#undef QWASM_LANES
#define QWASM_LANES lanes_relaxed_wide
#include "core/kernels/panel_algorithms.inc"

namespace qwasm {

namespace {

Kernels with_q4(Kernels::Panel q4) {
  Kernels kernels = simd_kernels();
  kernels.name = "relaxed";
  kernels.q4 = q4;
  return kernels;
}

}  // namespace

const Kernels& relaxed_kernels() {
  static const Kernels kernels = with_q4({lanes_relaxed::quantize<lanes_relaxed::Q4>, lanes_relaxed::panel_matmul<lanes_relaxed::Q4>});
  return kernels;
}

const Kernels& relaxed_wide_kernels() {
  static const Kernels kernels = with_q4({lanes_relaxed_wide::quantize<lanes_relaxed_wide::Q4>, lanes_relaxed_wide::panel_matmul<lanes_relaxed_wide::Q4>});
  return kernels;
}

}  // namespace qwasm
