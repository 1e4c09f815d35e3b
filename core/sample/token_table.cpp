// Sorts a vocabulary by bytes.
#include "core/sample/token_table.h"

#include "core/base/sort.h"
#include "core/sample/grammar_graph.h"

namespace qwasm {

namespace {

// A token as a word: where its bytes begin, their count (10 bits and one) and its id.
struct Packed {
  uint64_t word;
  uint32_t offset() const { return static_cast<uint32_t>(word >> 35); }
  uint32_t length() const { return word >> 24 & 0x7ff; }
  int32_t id() const { return static_cast<int32_t>(word & 0xffffff); }
  std::string_view of(const std::string& bytes) const { return {bytes.data() + offset(), length()}; }
};

uint16_t free_from(std::string_view bytes) {
  size_t from = 0;
  for (size_t at = 0; at < bytes.size();) {
    uint32_t code;
    const uint32_t length = read_character(bytes.substr(at), &code);
    at += length > 0 ? length : 1;
    if (length == 0 || code < 0x20 || code == 0x7f || code == '"' || code == '\\') from = at;
  }
  return static_cast<uint16_t>(from);
}

}  // namespace

TokenTable::TokenTable(std::string bytes, const std::vector<uint32_t>& ends) : bytes_(std::move(bytes)) {
  std::vector<uint64_t> order;
  for (size_t id = 0; id < ends.size(); ++id) {
    const uint32_t offset = id > 0 ? ends[id - 1] : 0, length = ends[id] - offset;
    if (length > 0 && length <= kLongest) order.push_back(static_cast<uint64_t>(offset) << 35 | static_cast<uint64_t>(length) << 24 | id);
  }
  const auto less = [](const void* all, uint64_t a, uint64_t b) {
    const auto& text = *static_cast<const std::string*>(all);
    return Packed{a}.of(text) < Packed{b}.of(text);
  };
  sort_words(&order, less, &bytes_);
  tokens_ = std::vector<Token>(order.size());
  std::string_view before;
  for (size_t i = 0; i < order.size(); ++i) {
    const Packed packed{order[i]};
    const std::string_view text = packed.of(bytes_);
    uint16_t shared = 0;
    while (shared < before.size() && shared < text.size() && before[shared] == text[shared]) ++shared;
    tokens_[i] = {packed.offset(), packed.length(), packed.id(), shared, free_from(text)};
    before = text;
  }
}

}  // namespace qwasm
