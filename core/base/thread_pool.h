// The threads of an engine: one function run on all of them at once, with a barrier at the end.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

namespace qwasm {

class ThreadPool {
 public:
  // `threads` counts the caller; clamped to 1 … kMaxThreads, and to what the system starts (in wasm: the workers that the module was
  // started with; none in a module without threads).
  static constexpr int kMaxThreads = 64;
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return threads_; }

  // Calls task(ith, threads()) for every ith on a thread of its own and returns when all have ended. Not reentrant. With one thread
  // it is a plain call that touches no atomics.
  template <typename Task>
  void run(const Task& task) {
    run([](const void* context, int ith, int nth) { (*static_cast<const Task*>(context))(ith, nth); }, &task);
  }

 private:
  using Function = void (*)(const void* context, int ith, int nth);
  struct Shared;
  void run(Function function, const void* context);

  int threads_ = 1;
  std::unique_ptr<Shared> shared_;
};

// The part of 0 … count that falls to thread `ith` of `nth`, cut at multiples of `grain`.
struct Range {
  int64_t begin, end;
};
inline Range part(int64_t count, int ith, int nth, int64_t grain = 1) {
  const int64_t grains = (count + grain - 1) / grain;
  const int64_t begin = grains * ith / nth * grain, end = grains * (ith + 1) / nth * grain;
  return {begin < count ? begin : count, end < count ? end : count};
}

}  // namespace qwasm
