// Where memory is not there: the sentence about a large allocation, and the end of a wasm module after a small one.
#include "core/base/buffer.h"

#include <atomic>
#include <new>

namespace qwasm {

namespace {

std::atomic<size_t> refused{0};

// 335000000 → "335,000,000"
std::string grouped(uint64_t number) {
  const std::string digits = std::to_string(number);
  std::string text;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

}  // namespace

Status no_memory(const char* what, uint64_t bytes, const char* hint) {
  return error(Code::kOutOfMemory, "no memory for %s: %s bytes were asked; %s", what, grouped(bytes).c_str(), hint);
}

size_t refused_bytes() { return refused.load(); }

}  // namespace qwasm

#ifdef __EMSCRIPTEN__

// Without exceptions a container cannot report that it got no memory, so the module ends; but it leaves word of why.
void* operator new(size_t bytes) {
  void* place = std::malloc(bytes > 0 ? bytes : 1);
  if (place) return place;
  qwasm::refused.store(bytes);
  __builtin_trap();
}

void operator delete(void* place) noexcept { std::free(place); }

#endif
