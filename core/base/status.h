// What every fallible function of the core returns: nothing wrong, or a kind of failure and one sentence for people.
#pragma once

#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>

namespace qwasm {

// The numbers are part of the C ABI (core/api/qwasm.h: qw_status) and of js/src/errors.ts.
enum class Code : int32_t {
  kOk = 0,
  kInvalidArgument = 1,  // an option or argument outside its domain
  kInvalidFile = 2,      // bytes that break their file's format
  kMissing = 3,          // a file, tensor or field that must be there is not
  kUnsupported = 4,      // well-formed, but qwasm does not implement it
  kOutOfMemory = 5,
  kContextOverflow = 6,  // more tokens than contextLength
  kNotFinite = 7,        // NaN or infinity in weights or logits
  kWrongState = 8,       // a call out of its order
  kNoTokenizer = 9,      // a text call on a model that came without a tokenizer
};

// A sentence names the file, tensor, field or option, what was expected and what was found.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Code code, std::string message) : code_(code), message_(std::move(message)) {}

  bool ok() const { return code_ == Code::kOk; }
  Code code() const { return code_; }
  const std::string& message() const { return message_; }

 private:
  Code code_ = Code::kOk;
  std::string message_;
};

// A failed Status with a printf-formatted sentence.
[[gnu::format(printf, 2, 3)]] inline Status error(Code code, const char* format, ...) {
  va_list args;
  va_start(args, format);
  va_list again;
  va_copy(again, args);
  const int length = std::vsnprintf(nullptr, 0, format, args);
  va_end(args);
  std::string message(length > 0 ? static_cast<size_t>(length) : 0, '\0');
  if (length > 0) std::vsnprintf(message.data(), message.size() + 1, format, again);
  va_end(again);
  return Status(code, std::move(message));
}

}  // namespace qwasm

// Leaves the calling function with the failure, if `expression` fails.
#define QW_TRY(expression)                            \
  do {                                                \
    ::qwasm::Status qw_status_ = (expression);        \
    if (!qw_status_.ok()) return qw_status_;          \
  } while (false)
