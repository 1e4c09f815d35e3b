// Time for measurements: seconds since some moment, never backwards.
#pragma once

#include <chrono>

namespace qwasm {

inline double seconds_now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

}  // namespace qwasm
