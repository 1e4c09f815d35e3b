// Threads that spin for a moment and then sleep: spinning alone fell to 0.7 tokens/s when another process wanted the cores.
#include "core/base/thread_pool.h"

#if !defined(__EMSCRIPTEN__) || defined(__EMSCRIPTEN_PTHREADS__)
#define QWASM_HAS_THREADS 1
#include <pthread.h>

#include <cmath>
#ifdef __EMSCRIPTEN__
#include <emscripten/threading.h>

#include <climits>
#endif
#endif

namespace qwasm {

#if QWASM_HAS_THREADS

namespace {

using Word = std::atomic<uint32_t>;

// About 0.1 ms, longer than a layer's serial gaps.
constexpr int kSpins = 100'000;

// Parts a thread at the most: the last ones are what the others wait for. Taking one costs about 0.1 µs where threads compete.
constexpr int64_t kPartsPerThread = 32;

// The current work in one word: how many parts it has, and which is taken next. At the end both are the same.
constexpr uint32_t parts_of(uint32_t word) { return word >> 16; }
constexpr uint32_t next_of(uint32_t word) { return word & 0xffff; }

// By compare and exchange, as all counting here: with fetch_sub in V8 11.3's baseline code a sleeper missed its wake-up (38 of 10,000
// rounds under Node 20; none in V8's optimized code, none in Node 24, none this way).
uint32_t change_by(Word& word, uint32_t difference) {
  uint32_t value = word.load();
  while (!word.compare_exchange_weak(value, value + difference)) {
  }
  return value + difference;
}

// Sleeps unless the word has changed already; `sleepers` tells that somebody must be woken.
void sleep_while_equal(Word& word, uint32_t value, Word& sleepers, [[maybe_unused]] double most_milliseconds = INFINITY) {
  change_by(sleepers, 1);
#ifdef __EMSCRIPTEN__
  emscripten_futex_wait(&word, value, most_milliseconds);
#else
  word.wait(value);
#endif
  change_by(sleepers, ~0u);
}

void wake_all(Word& word, const Word& sleepers) {
  if (sleepers.load() == 0) return;
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

  alignas(64) Word work{0};   // see parts_of and next_of
  alignas(64) Word ended{0};  // parts that are done
  alignas(64) Word used{1};   // threads that work; the others wait for this word to change
  Word sleeping_idlers{0};
  alignas(64) Word sleeping_workers{0};
  Word sleeping_caller{0};
  Function function = nullptr;  // null: the workers leave, one a part
  const void* context = nullptr;
  int64_t count = 0;
  Thread started[kMaxThreads];

  void begin(int64_t items, uint32_t parts, Function f, const void* c) {
    function = f;
    context = c;
    count = items;
    ended.store(0);
    work.store(parts << 16);
    wake_all(work, sleeping_workers);
  }

  // Takes a part of the current work and does it; false where none is left. What begin() wrote stays until the last part has ended, so
  // whoever took one reads the right function.
  bool take_part(int ith, bool* leave) {
    uint32_t word = work.load();
    do {
      if (next_of(word) >= parts_of(word)) return false;
    } while (!work.compare_exchange_weak(word, word + 1));
    *leave = function == nullptr;
    if (*leave) return false;
    function(context, part(count, next_of(word), parts_of(word)), ith);
    if (change_by(ended, 1) == parts_of(word)) wake_all(ended, sleeping_caller);
    return true;
  }

  void wait_for_work() {
    uint32_t word = work.load();
    for (int i = 0; i < kSpins; ++i, word = work.load()) {
      if (next_of(word) < parts_of(word)) return;
    }
    sleep_while_equal(work, word, sleeping_workers);
  }

  void wait_for_end(uint32_t parts) {
    for (int i = 0; i < kSpins; ++i) {
      if (ended.load() == parts) return;
    }
    // Emscripten looks whether a thread has crashed where a wait begins, and then unwinds this thread; so waits must begin again.
    for (uint32_t done; (done = ended.load()) != parts;) sleep_while_equal(ended, done, sleeping_caller, /*most_milliseconds=*/100);
  }

  void use(int count) {
    used.store(static_cast<uint32_t>(count));
    wake_all(used, sleeping_idlers);
    wake_all(work, sleeping_workers);  // who is no longer used must not be waited for there
  }

  static void* live(void* argument) {
    const Thread& self = *static_cast<Thread*>(argument);
    Shared& shared = *self.shared;
    for (bool leave = false; !leave;) {
      const uint32_t used = shared.used.load();
      if (static_cast<uint32_t>(self.ith) >= used) {
        sleep_while_equal(shared.used, used, shared.sleeping_idlers);
      } else if (!shared.take_part(self.ith, &leave) && !leave) {
        shared.wait_for_work();
      }
    }
    return nullptr;
  }
};

ThreadPool::ThreadPool(int threads) : shared_(new Shared) {
  const int wanted = threads < 1 ? 1 : threads > kMaxThreads ? kMaxThreads : threads;
  for (int ith = 1; ith < wanted; ++ith) {
    Shared::Thread& thread = shared_->started[ith];
    thread.shared = shared_.get();
    thread.ith = ith;
    if (pthread_create(&thread.handle, nullptr, &Shared::live, &thread) != 0) break;
    threads_ = ith + 1;
  }
  use(threads_);
}

void ThreadPool::use(int count) {
  used_ = count < 1 ? 1 : count > threads_ ? threads_ : count;
  shared_->use(used_);
}

ThreadPool::~ThreadPool() {
  use(threads_);
  if (threads_ > 1) shared_->begin(0, static_cast<uint32_t>(threads_ - 1), nullptr, nullptr);
  for (int ith = 1; ith < threads_; ++ith) pthread_join(shared_->started[ith].handle, nullptr);
}

void ThreadPool::run(int64_t count, Function function, const void* context) {
  const int64_t most = used_ * kPartsPerThread;
  const auto parts = static_cast<uint32_t>(count < most ? count : most);
  shared_->begin(count, parts, function, context);
  for (bool leave = false; shared_->take_part(0, &leave);) {
  }
  shared_->wait_for_end(parts);
}

#else  // a module without threads

struct ThreadPool::Shared {};
ThreadPool::ThreadPool(int) {}
ThreadPool::~ThreadPool() = default;
void ThreadPool::use(int) {}
void ThreadPool::run(int64_t count, Function function, const void* context) { function(context, {0, count}, 0); }

#endif

}  // namespace qwasm
