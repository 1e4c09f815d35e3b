// Byte-pair encoding: see bpe.h.
#include "core/text/bpe.h"

#include <algorithm>
#include <bit>

namespace qwasm {
namespace {

uint64_t pair_key(int32_t left, int32_t right) {
  return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
}

}  // namespace

void Bpe::reserve(size_t count) { slots_.assign(std::bit_ceil(count + count / 2 + 1), Slot{}); }

size_t Bpe::slot_of(uint64_t pair) const {
  size_t slot = (pair * 0x9e3779b97f4a7c15) >> 32 & (slots_.size() - 1);
  while (slots_[slot].pair != pair && slots_[slot].pair != UINT64_MAX) slot = (slot + 1) & (slots_.size() - 1);
  return slot;
}

void Bpe::add_merge(int32_t left, int32_t right, uint32_t rank, int32_t merged) {
  const uint64_t pair = pair_key(left, right);
  slots_[slot_of(pair)] = {pair, {rank, merged}};
}

Bpe::Merge Bpe::find(int32_t left, int32_t right) const { return slots_[slot_of(pair_key(left, right))].merge; }

std::vector<std::pair<int32_t, int32_t>> Bpe::merges() const {
  std::vector<std::pair<int32_t, int32_t>> merges;
  for (const Slot& slot : slots_) {
    if (slot.pair == UINT64_MAX) continue;
    if (slot.merge.rank >= merges.size()) merges.resize(slot.merge.rank + 1, {kNoToken, kNoToken});
    merges[slot.merge.rank] = {static_cast<int32_t>(slot.pair >> 32), static_cast<int32_t>(slot.pair)};
  }
  return merges;
}

void Bpe::encode(std::string_view piece, std::vector<int32_t>* ids) const {
  if (piece.size() <= kScanLimit) {
    encode_by_scan(piece, ids);
  } else {
    encode_by_heap(piece, ids);
  }
}

void Bpe::encode_by_scan(std::string_view piece, std::vector<int32_t>* ids) const {
  int32_t tokens[kScanLimit];
  Merge merges[kScanLimit];  // merges[i]: of tokens[i] and tokens[i + 1]
  size_t count = 0;
  for (const char c : piece) {
    const int32_t token = byte_tokens_[static_cast<unsigned char>(c)];
    if (token != kNoToken) tokens[count++] = token;
  }
  for (size_t i = 0; i + 1 < count; ++i) merges[i] = find(tokens[i], tokens[i + 1]);
  while (count > 1) {
    size_t best = 0;
    for (size_t i = 1; i + 1 < count; ++i) {
      if (merges[i].rank < merges[best].rank) best = i;
    }
    if (merges[best].rank == UINT32_MAX) break;
    tokens[best] = merges[best].merged;
    std::copy(tokens + best + 2, tokens + count, tokens + best + 1);
    std::copy(merges + best + 1, merges + count - 1, merges + best);
    --count;
    if (best > 0) merges[best - 1] = find(tokens[best - 1], tokens[best]);
    if (best + 1 < count) merges[best] = find(tokens[best], tokens[best + 1]);
  }
  ids->insert(ids->end(), tokens, tokens + count);
}

void Bpe::encode_by_heap(std::string_view piece, std::vector<int32_t>* ids) const {
  struct Node {
    int32_t token;
    uint32_t previous, next;
  };
  struct Candidate {
    uint32_t rank, position;  // of the left node
    int32_t left, right, merged;
    bool operator<(const Candidate& other) const {  // the heap's top: lowest rank, then leftmost
      return rank != other.rank ? rank > other.rank : position > other.position;
    }
  };
  constexpr uint32_t kEnd = UINT32_MAX;

  std::vector<Node> nodes;
  nodes.reserve(piece.size());
  for (const char c : piece) {
    const int32_t token = byte_tokens_[static_cast<unsigned char>(c)];
    const auto index = static_cast<uint32_t>(nodes.size());
    if (token != kNoToken) nodes.push_back({token, index - 1, index + 1});  // the first one's previous is kEnd
  }
  if (nodes.empty()) return;
  nodes.back().next = kEnd;

  std::vector<Candidate> heap;
  const auto consider = [&](uint32_t left) {
    if (left == kEnd || nodes[left].next == kEnd) return false;
    const int32_t left_token = nodes[left].token, right_token = nodes[nodes[left].next].token;
    const Merge merge = find(left_token, right_token);
    if (merge.rank == UINT32_MAX) return false;
    heap.push_back({merge.rank, left, left_token, right_token, merge.merged});
    return true;
  };
  for (uint32_t i = 0; i < nodes.size(); ++i) consider(i);
  std::make_heap(heap.begin(), heap.end());
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end());
    const Candidate c = heap.back();
    heap.pop_back();
    Node& left = nodes[c.position];
    // A candidate is out of date when one of its two was merged meanwhile; a node that was swallowed has no token.
    if (left.token != c.left || left.next == kEnd || nodes[left.next].token != c.right) continue;
    Node& right = nodes[left.next];
    left.token = c.merged;
    left.next = right.next;
    right.token = kNoToken;
    if (left.next != kEnd) nodes[left.next].previous = c.position;
    if (consider(left.previous)) std::push_heap(heap.begin(), heap.end());
    if (consider(c.position)) std::push_heap(heap.begin(), heap.end());
  }
  for (uint32_t i = 0; i != kEnd; i = nodes[i].next) ids->push_back(nodes[i].token);
}

}  // namespace qwasm
