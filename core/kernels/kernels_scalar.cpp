// The kernels over scalar lanes: the reference that every other variant equals bit for bit.
#include <cstring>

#include "core/base/half.h"
#include "core/kernels/kernels.h"
#include "core/kernels/lanes_scalar.h"
#include "core/quant/cache_block.h"

#define QWASM_LANES lanes_scalar
#include "core/kernels/algorithms.inc"
#include "core/kernels/panel_algorithms.inc"
#include "core/kernels/attention_algorithms.inc"
#include "core/kernels/table.inc"

namespace qwasm {

const Kernels& scalar_kernels() { return lanes_scalar::kTable; }

}  // namespace qwasm
