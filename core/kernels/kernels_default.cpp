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

// A form's first times are those of the engine's baseline code, which say nothing about its best.
struct Timing {
  const Kernels& kernels;
  int rounds = 0;
  double early = 1, best = 1;

  void run() {
    const double seconds = time_q4(kernels);
    if (++rounds <= 4) early = std::min(early, seconds);
    best = std::min(best, seconds);
  }
  bool compiled_well() const { return best < 0.7 * early; }
};

// Both give the same bits. Ends when 25 ms have passed and both have been seen to become faster, or after 60 ms; in doubt it is pairs, for
// where quads are one instruction they are faster by far.
const Kernels& faster_relaxed_kernels() {
  using Clock = std::chrono::steady_clock;
  Timing pairs{relaxed_kernels()}, quads{relaxed_wide_kernels()};
  const auto start = Clock::now();
  const auto passed = [&](int milliseconds) { return Clock::now() - start > std::chrono::milliseconds(milliseconds); };
  while (!passed(60) && !(passed(25) && pairs.compiled_well() && quads.compiled_well())) {
    pairs.run();
    quads.run();
  }
  return pairs.compiled_well() && quads.best < 0.85 * pairs.best ? quads.kernels : pairs.kernels;
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
