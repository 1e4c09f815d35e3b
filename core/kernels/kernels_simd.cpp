// The kernels over 128-bit wasm SIMD.
#include <cstring>

#include "core/base/half.h"
#include "core/kernels/kernels.h"
#include "core/kernels/lanes_simd.h"
#include "core/quant/cache_block.h"

#define QWASM_LANES lanes_simd
#include "core/kernels/algorithms.inc"
#include "core/kernels/panel_algorithms.inc"
#include "core/kernels/attention_algorithms.inc"
#include "core/kernels/table.inc"

namespace qwasm {

const Kernels& simd_kernels() { return lanes_simd::kTable; }

}  // namespace qwasm
