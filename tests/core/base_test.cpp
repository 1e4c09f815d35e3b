// The room core/base: half floats, double-precision functions, random numbers, the thread pool.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <thread>
#include <vector>

#include "core/base/buffer.h"
#include "core/base/half.h"
#include "core/base/math.h"
#include "core/base/rng.h"
#include "core/base/thread_pool.h"

namespace qwasm {
namespace {

TEST(Half, DecodesEveryFiniteFloat16Exactly) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const int exponent = static_cast<int>(bits >> 10 & 31), fraction = static_cast<int>(bits & 1023);
    if (exponent == 31) continue;
    const double magnitude = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
    const float expected = static_cast<float>(bits & 0x8000 ? -magnitude : magnitude);
    const float found = f16_to_f32(static_cast<uint16_t>(bits));
    ASSERT_EQ(found, expected) << bits;
    ASSERT_EQ(std::signbit(found), std::signbit(expected)) << bits;
  }
}

TEST(Half, DecodesBfloat16AsTheUpperHalfOfAFloat32) {
  EXPECT_EQ(bf16_to_f32(0x3f80), 1.0f);
  EXPECT_EQ(bf16_to_f32(0xc0a0), -5.0f);
  EXPECT_EQ(bf16_to_f32(0x0001), 0x1p-133f);
}

// Largest error of `found` relative to the C library's long double result.
template <typename F, typename G>
double worst_relative_error(double from, double to, F found, G expected) {
  double worst = 0;
  for (int i = 0; i <= 200'000; ++i) {
    const double x = from + (to - from) * i / 200'000;
    const long double right = expected(static_cast<long double>(x));
    worst = std::max(worst, static_cast<double>(std::fabs((static_cast<long double>(found(x)) - right) / right)));
  }
  return worst;
}

TEST(Math, ExpAndLogAreWithinAFewUnitsOfTheLastPlace) {
  EXPECT_LT(worst_relative_error(-690, 690, exp_f64, [](long double x) { return std::exp(x); }), 1e-15);
  EXPECT_LT(worst_relative_error(1.5, 1e7, log_f64, [](long double x) { return std::log(x); }), 1e-15);
  EXPECT_LT(worst_relative_error(1e-7, 0.9, log_f64, [](long double x) { return std::log(x); }), 1e-15);
  EXPECT_LT(worst_relative_error(-690, 0, exp_not_above_1, [](long double x) { return std::exp(x); }), 1e-14);
  EXPECT_EQ(exp_not_above_1(0), 1);
  EXPECT_LT(exp_not_above_1(-INFINITY), 1e-300);
  EXPECT_EQ(log_f64(1), 0);
  EXPECT_EQ(exp_f64(0), 1);
  EXPECT_EQ(exp_f64(-INFINITY), 0);
}

TEST(Math, SinAndCosStayExactForLargeAngles) {
  double worst = 0;
  Rng rng(1);
  for (int i = 0; i < 300'000; ++i) {
    const double x = rng.uniform() * std::ldexp(1, i % 27);
    const SinCos found = sincos_f64(x);
    worst = std::max(worst, std::fabs(found.sin - static_cast<double>(std::sin(static_cast<long double>(x)))));
    worst = std::max(worst, std::fabs(found.cos - static_cast<double>(std::cos(static_cast<long double>(x)))));
  }
  EXPECT_LT(worst, 1e-15);
}

TEST(Rng, GivesTheReferenceSequenceOfSplitMix64) {
  Rng rng(1234567);  // the reference implementation's published test values
  EXPECT_EQ(rng.next(), 6457827717110365317u);
  EXPECT_EQ(rng.next(), 3203168211198807973u);
  EXPECT_EQ(rng.next(), 9817491932198370423u);
}

TEST(Rng, IsUniformFromZeroToBelowOne) {
  Rng rng(7);
  double sum = 0;
  for (int i = 0; i < 100'000; ++i) {
    const double x = rng.uniform();
    ASSERT_GE(x, 0);
    ASSERT_LT(x, 1);
    sum += x;
  }
  EXPECT_NEAR(sum / 100'000, 0.5, 0.005);
}

TEST(Buffer, ReportsMemoryThatIsNotThere) {
  Buffer<double> buffer;
  const Status status = buffer.allocate(UINT64_MAX / 8, "a test", "less is more");
  EXPECT_EQ(status.code(), Code::kOutOfMemory);
  EXPECT_EQ(status.message(), "no memory for a test: 18,446,744,073,709,551,615 bytes were asked; less is more");
  EXPECT_EQ(buffer.size(), 0u);
  EXPECT_TRUE(buffer.allocate(3, "a test").ok());
  EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % 64, 0u);
}

TEST(ThreadPool, DoesEachItemOnceARound) {
  for (const int threads : {1, 2, 3, 7, 64, 1000}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.threads(), std::min(threads, ThreadPool::kMaxThreads));
    for (const int64_t count : {0, 1, 2, 5, 17, 1000}) {
      std::vector<std::atomic<int>> done(static_cast<size_t>(count));
      for (int round = 0; round < 20; ++round) {
        pool.run(count, [&](Range range, int ith) {
          ASSERT_GE(ith, 0);
          ASSERT_LT(ith, pool.threads());
          for (int64_t i = range.begin; i < range.end; ++i) ++done[static_cast<size_t>(i)];
        });
        for (auto& times : done) ASSERT_EQ(times, round + 1);
      }
    }
  }
}

TEST(ThreadPool, NeverRunsTwoPartsOfOneThreadAtOnce) {
  ThreadPool pool(4);
  std::vector<std::atomic<int>> inside(4);
  for (int round = 0; round < 200; ++round) {
    pool.run(32, [&](Range, int ith) {
      ASSERT_EQ(++inside[static_cast<size_t>(ith)], 1);
      --inside[static_cast<size_t>(ith)];
    });
  }
}

TEST(ThreadPool, WakesThreadsThatFellAsleepBetweenRounds) {
  ThreadPool pool(2);
  for (int round = 0; round < 3; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    std::atomic<bool> here[2] = {false, false};
    // Each part waits for the other, so both threads must be there.
    pool.run(2, [&](Range range, int) {
      here[range.begin] = true;
      while (!here[1 - range.begin]) std::this_thread::yield();
    });
  }
}

TEST(ThreadPool, UsesAsManyOfItsThreadsAsItIsTold) {
  ThreadPool pool(4);
  for (const int count : {1, 3, 2, 4, 1, 4, 100, 0}) {
    pool.use(count);
    const int used = std::clamp(count, 1, 4);
    EXPECT_EQ(pool.used(), used);
    for (int round = 0; round < 50; ++round) {
      std::atomic<int> items = 0;
      pool.run(100, [&](Range range, int ith) {
        ASSERT_LT(ith, used);
        items += static_cast<int>(range.end - range.begin);
      });
      ASSERT_EQ(items, 100);
    }
  }
  EXPECT_EQ(pool.threads(), 4);
}

TEST(ThreadPool, OfFewerThanOneThreadHasOne) { EXPECT_EQ(ThreadPool(-5).threads(), 1); }

TEST(Part, CoversEverythingOnceInOrder) {
  for (int64_t count = 0; count < 40; ++count) {
    for (int nth = 1; nth < 9; ++nth) {
      int64_t at = 0;
      for (int ith = 0; ith < nth; ++ith) {
        const Range range = part(count, ith, nth);
        ASSERT_EQ(range.begin, at);
        ASSERT_GE(range.end, range.begin);
        at = range.end;
      }
      ASSERT_EQ(at, count);
    }
  }
}

}  // namespace
}  // namespace qwasm
