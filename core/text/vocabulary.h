// The tokens of a tokenizer: id to text and text to id, in one pool of characters (Qwen3: 151,669 tokens in 4.3 MB).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"

namespace qwasm {

class Vocabulary {
 public:
  static constexpr int32_t kMaxId = (1 << 24) - 1;

  // False when the text is there already. 0 <= id <= kMaxId.
  bool add(int32_t id, std::string_view text);

  // Ends adding; fails (naming `file`) when two tokens have one id or the ids lie absurdly far apart.
  Status seal(const char* file);

  std::optional<int32_t> find(std::string_view text) const;
  size_t size() const { return entries_.size(); }

  // After seal only.
  bool has(int32_t id) const { return id >= 0 && id < id_limit() && by_id_[id] != kNone; }
  std::string_view text(int32_t id) const { return text_of(entries_[by_id_[id]]); }  // has(id)
  int32_t id_limit() const { return static_cast<int32_t>(by_id_.size()); }

 private:
  struct Entry {
    int32_t id;
    uint32_t offset, length;
  };
  static constexpr uint32_t kNone = UINT32_MAX;

  std::string_view text_of(const Entry& e) const { return std::string_view(pool_).substr(e.offset, e.length); }
  size_t slot_of(std::string_view text) const;  // where it is, or the free slot where it would be
  void grow();

  std::string pool_;
  std::vector<Entry> entries_;   // in the order of adding
  std::vector<uint32_t> slots_;  // hash table of indices into entries_; the size is a power of two
  std::vector<uint32_t> by_id_;  // index into entries_
};

}  // namespace qwasm
