// How many of the threads that were asked for make decoding faster: cores may be few, shared, or slower than memory.
#pragma once

#include "core/base/thread_pool.h"
#include "core/kernels/kernels.h"
#include "core/model/weights.h"

namespace qwasm {

// Times the head's product, a quarter of Qwen3-0.6B's decoding, with all threads, half of them, a quarter …, and uses the fewest that come
// within 5 % of the best. A head below 16 MB is over before threads matter: all are used then.
Status choose_threads(const Config& config, const Weights& weights, const Kernels& kernels, ThreadPool& pool);

}  // namespace qwasm
