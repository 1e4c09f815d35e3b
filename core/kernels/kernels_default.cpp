// Which variant a build runs.
#include "core/kernels/kernels.h"

#ifdef __wasm_relaxed_simd__
#include <algorithm>
#include <chrono>
#include <vector>
#endif

namespace qwasm {

#ifdef __wasm_relaxed_simd__

namespace {

// Seconds for some products of q4, in the shape of a small matrix.
double time_q4(const Kernels& kernels) {
  constexpr int64_t kBlocks = 32, kPanels = 64;
  static const std::vector<uint8_t> panels(static_cast<size_t>(kPanels * kBlocks * block_bytes(Format::kQ4)), 0x35);
  std::vector<uint8_t> values(kBlocks * QuantizedTokens::kBlockBytes, 3);
  std::vector<float> scales(kBlocks, 1.0f), y(kPanels * kPanelRows);
  std::vector<int32_t> sums(kBlocks, 7);
  const auto start = std::chrono::steady_clock::now();
  kernels.q4.matmul(y.data(), kPanels * kPanelRows, kPanels * kPanelRows, panels.data(), {values.data(), scales.data(), sums.data(), 1, kBlocks}, 0, kPanels,
                    nullptr);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Both give the same bits. About 4 ms in all: engines compile a function well only after it ran a while.
const Kernels& faster_relaxed_kernels() {
  double pairs = 1, quads = 1;
  for (int round = 0; round < 40; ++round) {
    pairs = std::min(pairs, time_q4(relaxed_kernels()));
    quads = std::min(quads, time_q4(relaxed_wide_kernels()));
  }
  return quads < pairs ? relaxed_wide_kernels() : relaxed_kernels();
}

}  // namespace

const Kernels& default_kernels() {
  static const Kernels& kernels = faster_relaxed_kernels();
  return kernels;
}

#elif defined(__wasm_simd128__)

const Kernels& default_kernels() { return simd_kernels(); }

#else

const Kernels& default_kernels() { return scalar_kernels(); }

#endif

}  // namespace qwasm
