// Which variant a build runs.
#include "core/kernels/kernels.h"

namespace qwasm {

const Kernels& default_kernels() {
#ifdef __wasm_simd128__
  return simd_kernels();
#else
  return scalar_kernels();
#endif
}

}  // namespace qwasm
