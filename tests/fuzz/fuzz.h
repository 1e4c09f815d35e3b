// A fuzz target is one function over bytes that must neither crash nor fail a check. Under libFuzzer (npm run fuzz) each is a program of its own;
// in npm test one program replays the corpus of all, with what a few simple changes make of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace qwasm::fuzz {

using Bytes = std::span<const char>;

struct Target {
  const char* name;  // of its folder in corpus/
  void (*run)(Bytes);
};

// For the replay: keeps a target for it.
int add_target(Target target);

}  // namespace qwasm::fuzz

#ifdef QWASM_REPLAY
#define QWASM_FUZZ_TARGET(name)                                                                         \
  static void fuzz_##name(qwasm::fuzz::Bytes bytes);                                                    \
  [[maybe_unused]] static const int added_##name = qwasm::fuzz::add_target({#name, fuzz_##name});       \
  static void fuzz_##name(qwasm::fuzz::Bytes bytes)
#else
#define QWASM_FUZZ_TARGET(name)                                                                         \
  static void fuzz_##name(qwasm::fuzz::Bytes bytes);                                                    \
  extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {                             \
    fuzz_##name({reinterpret_cast<const char*>(data), size});                                           \
    return 0;                                                                                           \
  }                                                                                                     \
  static void fuzz_##name(qwasm::fuzz::Bytes bytes)
#endif
