// Tokens by id and by text: see vocabulary.h.
#include "core/text/vocabulary.h"

#include <algorithm>

#include "core/text/quote.h"

namespace qwasm {
namespace {

uint64_t hash_of(std::string_view text) {  // FNV-1a, with its high bits folded down for small tables
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash ^ hash >> 32;
}

}  // namespace

size_t Vocabulary::slot_of(std::string_view text) const {
  size_t slot = hash_of(text) & (slots_.size() - 1);
  while (slots_[slot] != kNone && text_of(entries_[slots_[slot]]) != text) slot = (slot + 1) & (slots_.size() - 1);
  return slot;
}

void Vocabulary::grow() {
  slots_.assign(std::max<size_t>(1024, slots_.size() * 4), kNone);
  for (size_t i = 0; i < entries_.size(); ++i) slots_[slot_of(text_of(entries_[i]))] = static_cast<uint32_t>(i);
}

bool Vocabulary::add(int32_t id, std::string_view text) {
  if ((entries_.size() + 1) * 4 > slots_.size() * 3) grow();
  const size_t slot = slot_of(text);
  if (slots_[slot] != kNone) return false;
  slots_[slot] = static_cast<uint32_t>(entries_.size());
  entries_.push_back({id, static_cast<uint32_t>(pool_.size()), static_cast<uint32_t>(text.size())});
  pool_.append(text);
  return true;
}

Status Vocabulary::seal(const char* file) {
  int32_t largest = -1;
  for (const Entry& entry : entries_) largest = std::max(largest, entry.id);
  // A few tokens with huge ids would make a huge table of nothing.
  if (static_cast<size_t>(largest + 1) > (1u << 20) + 16 * entries_.size()) {
    return error(Code::kInvalidFile, "%s: has %zu tokens, but the id %d; ids must not lie that far apart", file,
                 entries_.size(), largest);
  }
  by_id_.assign(largest + 1, kNone);
  for (size_t i = 0; i < entries_.size(); ++i) {
    uint32_t& index = by_id_[entries_[i].id];
    if (index != kNone) {
      return error(Code::kInvalidFile, "%s: the tokens %s and %s both have the id %d", file,
                   quote(text_of(entries_[index])).c_str(), quote(text_of(entries_[i])).c_str(), entries_[i].id);
    }
    index = static_cast<uint32_t>(i);
  }
  pool_.shrink_to_fit();
  entries_.shrink_to_fit();
  return {};
}

std::optional<int32_t> Vocabulary::find(std::string_view text) const {
  if (slots_.empty()) return std::nullopt;
  const size_t slot = slot_of(text);
  if (slots_[slot] == kNone) return std::nullopt;
  return entries_[slots_[slot]].id;
}

}  // namespace qwasm
