// The kernels over 128-bit wasm SIMD.
#include "core/kernels/kernels.h"
#include "core/kernels/lanes_simd.h"

#define QWASM_LANES lanes_simd
#include "core/kernels/panel_algorithms.inc"
#include "core/kernels/algorithms.inc"

namespace qwasm {

const Kernels& simd_kernels() { return lanes_simd::kTable; }

}  // namespace qwasm
