// Times one step of decoding with different numbers of threads.
#include "core/engine/choose_threads.h"

#include <algorithm>

#include "core/base/clock.h"
#include "core/model/ops.h"

namespace qwasm {

namespace {

constexpr int64_t kSmallHead = 16 << 20;  // bytes
constexpr int kTimes = 4;

}  // namespace

Status choose_threads(const Config& config, const Weights& weights, const Kernels& kernels, ThreadPool& pool) {
  const Matrix& head = weights.lm_head;
  if (pool.threads() == 1 || matrix_bytes(head.format, head.rows, head.columns) < kSmallHead) return {};
  Ops ops(config, kernels, pool);
  Buffer<float> x, y;
  QW_TRY(ops.prepare(1, FormatSet(head.format)));
  QW_TRY(x.allocate(static_cast<uint64_t>(head.columns), "activations"));
  QW_TRY(y.allocate(static_cast<uint64_t>(head.rows), "logits"));
  std::fill(x.data(), x.data() + head.columns, 1.0f);

  double best = 1e9;
  int chosen = pool.threads();
  for (int count = pool.threads(); count >= 1; count /= 2) {
    pool.use(count);
    double seconds = 1e9;
    for (int time = 0; time < kTimes; ++time) {
      const double start = seconds_now();
      ops.product(y.data(), head, x.data(), 1);
      seconds = std::min(seconds, seconds_now() - start);
    }
    if (seconds < 1.05 * best) chosen = count;
    best = std::min(best, seconds);
  }
  pool.use(chosen);
  return {};
}

}  // namespace qwasm
