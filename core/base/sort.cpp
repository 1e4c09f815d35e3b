// Merging, from pairs upwards.
#include "core/base/sort.h"

namespace qwasm {

void sort_words(std::vector<uint64_t>* words, bool (*less)(const void*, uint64_t, uint64_t), const void* context) {
  const size_t count = words->size();
  std::vector<uint64_t> merged(count);
  for (size_t width = 1; width < count; width *= 2) {
    const uint64_t* const from = words->data();
    for (size_t begin = 0; begin < count; begin += 2 * width) {
      const size_t middle = begin + width < count ? begin + width : count;
      const size_t end = middle + width < count ? middle + width : count;
      size_t a = begin, b = middle;
      for (size_t to = begin; to < end; ++to) {
        const bool second = a == middle || (b < end && less(context, from[b], from[a]));
        merged[to] = second ? from[b++] : from[a++];
      }
    }
    words->swap(merged);
  }
}

void sort_words(std::vector<uint64_t>* words) {
  sort_words(words, [](const void*, uint64_t a, uint64_t b) { return a < b; }, nullptr);
}

}  // namespace qwasm
