// Reads the weights and does as little as possible with them: their sum, so that no compiler leaves the reading out.
#include "core/engine/bandwidth.h"

#include <algorithm>

#include "core/base/clock.h"

namespace qwasm {

namespace {

// A cache line of sums: several vectors, so that additions need not wait for each other.
typedef uint64_t Line __attribute__((vector_size(64), may_alias));

constexpr int64_t kLine = sizeof(Line);
constexpr int64_t kRound = int64_t{16} << 20;  // bytes between two barriers; V8 puts faster code in place only between calls
constexpr double kLeastSeconds = 0.01;         // a small model is read several times over: clocks may tick by a tenth of a millisecond
constexpr int kTimes = 3;

uint64_t sum_lines(const uint8_t* bytes, int64_t count) {
  const auto* lines = reinterpret_cast<const Line*>(bytes);
  Line even = {}, odd = {};
  int64_t i = 0;
  for (; i + 2 <= count; i += 2) {
    even += lines[i];
    odd += lines[i + 1];
  }
  if (i < count) even += lines[i];
  even += odd;
  uint64_t sum = 0;
  for (int lane = 0; lane < 8; ++lane) sum += even[lane];
  return sum;
}

// Reads whole lines of the weights once; returns how many bytes that were.
int64_t read_once(const Weights& weights, ThreadPool& pool) {
  const int64_t bytes = static_cast<int64_t>(weights.memory.size()) / kLine * kLine;
  uint64_t sums[ThreadPool::kMaxThreads] = {};
  for (int64_t first = 0; first < bytes; first += kRound) {
    const uint8_t* round = weights.memory.data() + first;
    const int64_t lines = std::min(kRound, bytes - first) / kLine;
    pool.run(lines, [&](Range range, int ith) {
      sums[ith] += sum_lines(round + range.begin * kLine, range.end - range.begin);
    });
  }
  return bytes;
}

}  // namespace

double read_bandwidth(const Weights& weights, ThreadPool& pool) {
  double best = 0;
  for (int time = 0; time < kTimes; ++time) {
    const double start = seconds_now();
    double bytes = 0, spent = 0;
    do {
      bytes += static_cast<double>(read_once(weights, pool));
      spent = seconds_now() - start;
    } while (spent < kLeastSeconds);
    best = std::max(best, bytes / spent);
  }
  return best;
}

}  // namespace qwasm
