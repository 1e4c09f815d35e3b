// Which variant a build runs.
#include "core/kernels/kernels.h"

#ifdef __wasm_relaxed_simd__
#include <algorithm>
#include <vector>

#include "core/base/clock.h"
#endif

namespace qwasm {

#ifdef __wasm_relaxed_simd__

namespace {

// Products of q4 in the shape of a small matrix.
struct Sample {
  static constexpr int64_t kBlocks = 32, kPanels = 64, kRows = kPanels * kPanelRows;
  std::vector<uint8_t> panels = std::vector<uint8_t>(kPanels * kBlocks * block_bytes(Format::kQ4), 0x35);
  std::vector<uint8_t> values = std::vector<uint8_t>(kBlocks * QuantizedTokens::kBlockBytes, 3);
  std::vector<float> scales = std::vector<float>(kBlocks, 1.0f), sums = std::vector<float>(kBlocks * QuantizedTokens::kSums, 7.0f), y = std::vector<float>(kRows);

  double seconds(const Kernels& kernels) {
    const double start = seconds_now();
    kernels.panel(Format::kQ4).matmul(y.data(), kRows, kRows, panels.data(), {values.data(), scales.data(), sums.data(), 1, kBlocks, Format::kQ4}, 0, kPanels, nullptr);
    return seconds_now() - start;
  }
};

// A form's first times are those of the engine's baseline code, which say nothing about its best.
struct Timing {
  const Kernels& kernels;
  int rounds = 0;
  double early = 1, best = 1;

  void add(double seconds) {
    if (++rounds <= 4) early = std::min(early, seconds);
    best = std::min(best, seconds);
  }
  bool compiled_well() const { return best < 0.7 * early; }
};

// Both give the same bits. Ends when 25 ms have passed and both have been seen to become faster, or after 60 ms; in doubt it is pairs, for
// where quads are one instruction they are faster by far.
const Kernels& faster_relaxed_kernels() {
  Sample sample;
  Timing pairs{relaxed_kernels()}, quads{relaxed_wide_kernels()};
  const double start = seconds_now();
  const auto passed = [&](double seconds) { return seconds_now() - start > seconds; };
  while (!passed(0.060) && !(passed(0.025) && pairs.compiled_well() && quads.compiled_well())) {
    for (Timing* form : {&pairs, &quads}) form->add(sample.seconds(form->kernels));
  }
  return pairs.compiled_well() && quads.best < 0.85 * pairs.best ? quads.kernels : pairs.kernels;
}

}  // namespace

const Kernels& default_kernels(FormatSet formats) {
  if (!formats.has(Format::kQ4)) return relaxed_kernels();
  static const Kernels& kernels = faster_relaxed_kernels();
  return kernels;
}

#elif defined(__wasm_simd128__)

const Kernels& default_kernels(FormatSet) { return simd_kernels(); }

#else

const Kernels& default_kernels(FormatSet) { return scalar_kernels(); }

#endif

}  // namespace qwasm
