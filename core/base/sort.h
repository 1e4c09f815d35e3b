// Sorting in one place: each std::sort of a type of its own would add 3 to 11 KB to the modules.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace qwasm {

// Stable, by `less(context, a, b)`.
void sort_words(std::vector<uint64_t>* words, bool (*less)(const void* context, uint64_t a, uint64_t b), const void* context);

// By their numbers.
void sort_words(std::vector<uint64_t>* words);

}  // namespace qwasm
