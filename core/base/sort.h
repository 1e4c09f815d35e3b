// Sorting in one place: each std::sort of a type of its own would add 3 to 11 KB to the modules.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace qwasm {

// Stable, by `less(context, a, b)`.
void sort_words(std::vector<uint64_t>* words, bool (*less)(const void* context, uint64_t a, uint64_t b), const void* context);

// By their numbers.
void sort_words(std::vector<uint64_t>* words);

// Stable, of items of any type, by their places.
template <typename Item>
void sort_items(std::vector<Item>* items, bool (*less)(const Item& a, const Item& b)) {
  struct Order {
    const Item* items;
    bool (*less)(const Item&, const Item&);
  };
  const Order order = {items->data(), less};
  std::vector<uint64_t> places(items->size());
  for (size_t i = 0; i < places.size(); ++i) places[i] = i;
  const auto before = [](const void* context, uint64_t a, uint64_t b) {
    const Order& o = *static_cast<const Order*>(context);
    return o.less(o.items[a], o.items[b]);
  };
  sort_words(&places, before, &order);
  std::vector<Item> sorted;
  sorted.reserve(items->size());
  for (const uint64_t place : places) sorted.push_back(std::move((*items)[static_cast<size_t>(place)]));
  items->swap(sorted);
}

}  // namespace qwasm
