// Large memory that may not be there: an aligned array whose allocation reports failure instead of aborting.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <utility>

#include "core/base/status.h"

namespace qwasm {

// The failure of a large allocation. `hint` says what would take less.
Status no_memory(const char* what, uint64_t bytes, const char* hint);

// In a wasm module that has trapped: the bytes of the small allocation that ended it, or 0 where something else did.
size_t refused_bytes();

// An owned array of trivially copyable T, aligned to 64 bytes (a cache line), uninitialized.
template <typename T>
class Buffer {
 public:
  Buffer() = default;
  Buffer(Buffer&& other) noexcept : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~Buffer() { std::free(data_); }

  // Replaces the contents by `count` elements. `what` names the buffer in the error sentence, `hint` ends it.
  Status allocate(uint64_t count, const char* what, const char* hint = "a smaller dtype or contextLength leaves more room") {
    std::free(std::exchange(data_, nullptr));
    size_ = 0;
    const bool countable = count <= (UINT64_MAX - 63) / sizeof(T);
    const uint64_t bytes = countable ? (count * sizeof(T) + 63) / 64 * 64 : UINT64_MAX;
    if (countable && bytes <= SIZE_MAX) data_ = static_cast<T*>(std::aligned_alloc(64, bytes > 0 ? static_cast<size_t>(bytes) : 64));
    if (!data_) return no_memory(what, bytes, hint);
    size_ = static_cast<size_t>(count);
    return {};
  }

  T* data() { return data_; }
  const T* data() const { return data_; }
  size_t size() const { return size_; }
  T& operator[](size_t i) { return data_[i]; }
  const T& operator[](size_t i) const { return data_[i]; }

 private:
  T* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace qwasm
