// Byte-level byte-pair encoding: pieces of text become ids by merging neighbours, the earliest merge first.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace qwasm {

class Bpe {
 public:
  static constexpr int32_t kNoToken = -1;

  // Room for `count` merges in all.
  void reserve(size_t count);
  // `left` and `right` side by side become `merged`; lower ranks go first. A pair given again replaces the earlier one.
  void add_merge(int32_t left, int32_t right, uint32_t rank, int32_t merged);
  // The token of each byte; kNoToken: the byte is left out, as Hugging Face does where there is no unknown token.
  void set_byte_tokens(const std::array<int32_t, 256>& tokens) { byte_tokens_ = tokens; }

  // Left and right of each merge, by rank; kNoToken at ranks whose pair was given again.
  std::vector<std::pair<int32_t, int32_t>> merges() const;

  // Appends the ids of one piece.
  void encode(std::string_view piece, std::vector<int32_t>* ids) const;

  // Pieces of up to this many bytes are merged by scanning, longer ones with a heap (n log n).
  static constexpr size_t kScanLimit = 48;

 private:
  struct Merge {
    uint32_t rank = UINT32_MAX;  // UINT32_MAX: there is no such merge
    int32_t merged = kNoToken;
  };
  struct Slot {
    uint64_t pair = UINT64_MAX;
    Merge merge;
  };

  size_t slot_of(uint64_t pair) const;
  Merge find(int32_t left, int32_t right) const;
  void encode_by_scan(std::string_view piece, std::vector<int32_t>* ids) const;
  void encode_by_heap(std::string_view piece, std::vector<int32_t>* ids) const;

  std::vector<Slot> slots_;  // hash table, a power of two in size, at most two thirds full
  std::array<int32_t, 256> byte_tokens_{};
};

}  // namespace qwasm
