// The kernels over 128-bit wasm SIMD with the products of 4-bit panels by relaxed SIMD, in two forms. What does not multiply those is that of kernels_simd.cpp.
#include <cstring>

#include "core/kernels/kernels.h"
#include "core/kernels/lanes_relaxed.h"

#define QWASM_LANES lanes_relaxed
#include "core/kernels/panel_algorithms.inc"
#undef QWASM_LANES
#define QWASM_LANES lanes_relaxed_wide
#include "core/kernels/panel_algorithms.inc"

namespace qwasm {

namespace {

Kernels with_four_bits(Kernels::Panel q4, Kernels::Panel q4m) {
  Kernels kernels = simd_kernels();
  kernels.name = "relaxed";
  kernels.panels[panel_index(Format::kQ4)] = q4;
  kernels.panels[panel_index(Format::kQ4M)] = q4m;
  return kernels;
}

}  // namespace

const Kernels& relaxed_kernels() {
  using namespace lanes_relaxed;
  static const Kernels kernels = with_four_bits(kPanel<Q4>, kPanel<Q4M>);
  return kernels;
}

const Kernels& relaxed_wide_kernels() {
  // q4m in its other form would be another 4.5 KB.
  static const Kernels kernels = with_four_bits(lanes_relaxed_wide::kPanel<lanes_relaxed_wide::Q4>, lanes_relaxed::kPanel<lanes_relaxed::Q4M>);
  return kernels;
}

}  // namespace qwasm
