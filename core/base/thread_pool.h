// The threads of an engine: a piece of work is cut into parts, and every thread takes the next part as soon as it has time.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

namespace qwasm {

// Items begin … end - 1.
struct Range {
  int64_t begin, end;
};

// The part of 0 … count that is number `ith` of `nth`.
inline Range part(int64_t count, int64_t ith, int64_t nth) { return {count * ith / nth, count * (ith + 1) / nth}; }

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

  // From now on only `count` threads (1 … threads()) work; the others sleep. Not while run() runs.
  void use(int count);
  int used() const { return used_; }

  // Calls work(range, ith) for ranges that together cover 0 … count - 1 (items worth a microsecond or more), on thread `ith` of used(), and
  // returns when all have ended. A thread that comes late finds less to do, so one whose core is busy elsewhere holds up the others by one part at the most.
  // Not reentrant. With one thread, or one item, it is a plain call that touches no atomics.
  template <typename Work>
  void run(int64_t count, const Work& work) {
    if (count <= 0) return;
    if (used_ == 1 || count == 1) return work(Range{0, count}, 0);
    run(count, [](const void* context, Range range, int ith) { (*static_cast<const Work*>(context))(range, ith); }, &work);
  }

 private:
  using Function = void (*)(const void* context, Range range, int ith);
  struct Shared;
  void run(int64_t count, Function function, const void* context);

  int threads_ = 1, used_ = 1;
  std::unique_ptr<Shared> shared_;
};

}  // namespace qwasm
