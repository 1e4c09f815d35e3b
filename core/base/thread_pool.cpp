// Threads that spin for a moment and then sleep: spinning alone fell to 0.7 tokens/s when another process wanted the cores.
#include "core/base/thread_pool.h"

#if !defined(__EMSCRIPTEN__) || defined(__EMSCRIPTEN_PTHREADS__)
#define QWASM_HAS_THREADS 1
#include <pthread.h>
#ifdef __EMSCRIPTEN__
#include <emscripten/threading.h>

#include <climits>
#include <cmath>
#endif
#endif

namespace qwasm {

#if QWASM_HAS_THREADS

namespace {

// About 0.1 ms. With 20,000 threads fell asleep in a layer's serial gaps: Qwen3-0.6B in q8 decoded 28 tokens/s, with this 38.
// Beside a process that keeps one of two cores busy it was 19 and 16, with 400,000 only 11.
constexpr int kSpins = 100'000;

void wait_while_equal(const std::atomic<uint32_t>& word, uint32_t value) {
  for (int i = 0; i < kSpins; ++i) {
    if (word.load(std::memory_order_acquire) != value) return;
  }
#ifdef __EMSCRIPTEN__
  // Emscripten's futex lets the thread that started the module look up every millisecond, so a wake-up that is missed cannot hang it.
  auto* address = const_cast<std::atomic<uint32_t>*>(&word);
  while (word.load(std::memory_order_acquire) == value) emscripten_futex_wait(address, value, INFINITY);
#else
  word.wait(value, std::memory_order_acquire);
#endif
}

void wake_all(std::atomic<uint32_t>& word) {
#ifdef __EMSCRIPTEN__
  emscripten_futex_wake(&word, INT_MAX);
#else
  word.notify_all();
#endif
}

}  // namespace

struct ThreadPool::Shared {
  struct Thread {
    Shared* shared;
    int ith;
    pthread_t handle;
  };

  alignas(64) std::atomic<uint32_t> round{0};    // counts calls of run; a change starts the workers
  alignas(64) std::atomic<uint32_t> running{0};  // workers that have not ended this round
  Function function = nullptr;                   // null: the workers leave
  const void* context = nullptr;
  int threads = 1;
  Thread started[kMaxThreads];

  void begin(Function f, const void* c) {
    function = f;
    context = c;
    running.store(static_cast<uint32_t>(threads - 1), std::memory_order_relaxed);
    round.fetch_add(1, std::memory_order_release);
    wake_all(round);
  }

  // Counts a worker out; true for the last. By compare and exchange: with fetch_sub in V8 11.3's baseline code the sleeping caller missed
  // its wake-up (38 of 10,000 rounds under Node 20; none in V8's optimized code, none in Node 24, none this way).
  bool end_one() {
    uint32_t left = running.load(std::memory_order_acquire);
    while (!running.compare_exchange_weak(left, left - 1, std::memory_order_acq_rel, std::memory_order_acquire)) {
    }
    return left == 1;
  }

  static void* work(void* argument) {
    const Thread& self = *static_cast<Thread*>(argument);
    Shared& shared = *self.shared;
    for (uint32_t seen = 0;;) {
      wait_while_equal(shared.round, seen);
      seen = shared.round.load(std::memory_order_acquire);
      if (!shared.function) return nullptr;
      shared.function(shared.context, self.ith, shared.threads);
      if (shared.end_one()) wake_all(shared.running);
    }
  }
};

ThreadPool::ThreadPool(int threads) : shared_(new Shared) {
  const int wanted = threads < 1 ? 1 : threads > kMaxThreads ? kMaxThreads : threads;
  for (int ith = 1; ith < wanted; ++ith) {
    Shared::Thread& thread = shared_->started[ith];
    thread.shared = shared_.get();
    thread.ith = ith;
    if (pthread_create(&thread.handle, nullptr, &Shared::work, &thread) != 0) break;
    threads_ = ith + 1;
  }
  shared_->threads = threads_;
}

ThreadPool::~ThreadPool() {
  if (threads_ > 1) shared_->begin(nullptr, nullptr);
  for (int ith = 1; ith < threads_; ++ith) pthread_join(shared_->started[ith].handle, nullptr);
}

void ThreadPool::run(Function function, const void* context) {
  if (threads_ == 1) return function(context, 0, 1);
  shared_->begin(function, context);
  function(context, 0, threads_);
  for (uint32_t left; (left = shared_->running.load(std::memory_order_acquire)) != 0;) wait_while_equal(shared_->running, left);
}

#else  // a module without threads

struct ThreadPool::Shared {};
ThreadPool::ThreadPool(int) {}
ThreadPool::~ThreadPool() = default;
void ThreadPool::run(Function function, const void* context) { function(context, 0, 1); }

#endif

}  // namespace qwasm
