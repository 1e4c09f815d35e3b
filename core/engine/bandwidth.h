// How fast memory delivers the weights: decoding one token reads them once, so no decoder is faster.
#pragma once

#include "core/base/thread_pool.h"
#include "core/model/weights.h"

namespace qwasm {

// Bytes per second at which all threads together read the weights' memory from its beginning to its end, the best of three times.
double read_bandwidth(const Weights& weights, ThreadPool& pool);

}  // namespace qwasm
