// Loading by want and push: the core says which bytes of which file it wants, the caller brings them in any order.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/base/thread_pool.h"
#include "core/files/gguf.h"
#include "core/files/safetensors.h"
#include "core/model/config.h"
#include "core/model/weights.h"
#include "core/text/tokenizer.h"

namespace qwasm {

// What loading leaves behind.
struct Model {
  bool has_config = false;
  Config config;
  uint64_t config_hash = 0;               // of config.json's bytes
  Json generation_config;                 // null where the folder has none
  TensorTable tensors;                    // what the headers said
  bool has_headers = false;
  Weights weights;
  std::unique_ptr<Tokenizer> tokenizer;   // null where the folder has none
  std::map<std::string, std::string> chat_templates;  // name → Jinja; "default" is the ordinary one
  std::map<std::string, std::string> special_tokens;  // texts by the names that templates know, such as "eos_token"
  std::vector<std::string> notes;         // sentences that a person should see
};

class Loader {
 public:
  enum class Parts { kModel, kTokenizer, kHeaders };

  // What matrices become in memory: exact keeps them as stored, and stored the values but in panels where the type has them; or made to q8
  // or q4 while they arrive. Auto is q8 for up to kMostQ8Parameters where that fits into the memory budget, else q4.
  enum class DType { kAuto, kExact, kQ8, kQ4, kStored };
  static constexpr const char* kDTypeNames[] = {"auto", "exact", "q8", "q4", "stored"};
  static constexpr int64_t kDefaultContext = 4096;
  static constexpr int64_t kMostQ8Parameters = 1'000'000'000;

  struct Options {
    Parts parts = Parts::kModel;
    DType dtype = DType::kAuto;
    int64_t memory_budget = INT64_MAX;  // bytes that weights may take, for auto
    std::string gguf;                   // the model is this GGUF file, or all parts of the one whose part it is; empty: a folder of Hugging Face's
    int64_t context_length = 0;         // of sessions; 0: what the model allows, kDefaultContext at the most
  };
  Loader(const Options& options, ThreadPool& pool, Model* model);

  // Never auto once the headers are known.
  DType dtype() const { return options_.dtype; }

  struct Want {
    std::string file;
    int64_t offset = 0, length = 0;  // length 0: the whole file
    bool optional = false;
  };
  // The next want that was not handed out yet, or null. It lives until it is answered.
  const Want* next(uint32_t* id);
  bool loaded() const { return loaded_; }
  Status require_no_failure() const;

  // A failure is final: what is pushed later is refused with kWrongState.
  Status push(uint32_t id, std::span<const char> bytes, int64_t file_size);
  Status push_missing(uint32_t id);

  int64_t weight_bytes() const { return weight_bytes_; }

  // How the weights stand in memory: of equal files, equal names mean equal bytes. Empty before the headers were read.
  const std::string& weights_layout() const { return layout_; }

  // The weights' memory was filled with what an earlier load made of the same files: their rows are not wanted any more.
  Status restore_weights();

 private:
  enum class Role { kConfig, kGenerationConfig, kTokenizer, kTokenizerConfig, kChatTemplate, kVocab, kMerges, kPrefix, kHeader, kIndex, kGguf, kRows };

  // Bytes of a run that go to one tensor: `count` elements of it, from element `first`, standing at `offset` of the run.
  struct Piece {
    size_t slot;
    int64_t offset, first, count;
  };
  struct Pending {
    Want want;
    Role role;
    std::vector<Piece> pieces;  // of kRows
  };

  void ask(Role role, std::string file, bool optional, int64_t offset = 0, int64_t length = 0);
  Status take(uint32_t id, Pending* pending);
  Status answer(const Pending& pending, std::span<const char> bytes, int64_t file_size);
  Status answer_missing(const Pending& pending);
  Status advance();

  Status check_length(const Pending& pending, std::span<const char> bytes, int64_t file_size) const;
  Status parse_text_file(const Pending& pending, std::span<const char> bytes);
  Status read_prefix(const Want& want, std::span<const char> bytes, int64_t file_size);
  Status read_index(const Want& want, std::span<const char> bytes);
  Status finish_tokenizer();
  Status finish_headers();

  // load_gguf.cpp
  Status read_gguf(const Want& want, std::span<const char> bytes, int64_t file_size);
  Status take_gguf_part(const std::string& file, Buffer<char> bytes, GgufHeader header);
  Status place_gguf_part(const std::string& file, const GgufSplit& split);
  Status finish_gguf();
  Status read_gguf_config();
  Status read_gguf_tokenizer();
  void read_gguf_templates();

  Status find_tensors(std::vector<const TensorInfo*>* found);
  Status place_weights(const std::vector<const TensorInfo*>& found);
  void name_layout(const std::vector<uint64_t>& offsets);
  void plan_runs(const std::vector<const TensorInfo*>& found);
  DType choose_dtype() const;
  Format format_of(const WeightSlot& slot, const TensorInfo& tensor) const;
  Status take_rows(const Pending& pending, std::span<const char> bytes);
  Status take_piece(const Piece& piece, const char* bytes, const std::string& file);
  void take_values(const Piece& piece, const uint8_t* stored, const FormatInfo& format);
  int64_t interleaved_rows(const WeightSlot& slot) const;
  int64_t row_grain(const WeightSlot& slot) const;
  Status take_matrix_rows(const Piece& piece, const char* bytes, const FormatInfo& format, int64_t* bad);

  Options options_;
  ThreadPool& pool_;
  Model* model_;
  bool loaded_ = false, failed_ = false;
  uint32_t next_id_ = 1;
  std::deque<uint32_t> ready_;           // wants not handed out yet
  std::map<uint32_t, Pending> pending_;  // wants not answered yet
  int64_t weight_bytes_ = 0;

  // Files that are read together with others, kept until all have come.
  std::vector<char> vocab_, merges_, tokenizer_config_;
  bool has_vocab_ = false, has_merges_ = false;
  std::map<std::string, std::string> weight_map_;  // of a sharded model

  // Of a GGUF model: headers that go on, by file; the first part's header, which has the metadata; how many parts there are.
  std::map<std::string, Buffer<char>> gguf_beginnings_;
  Buffer<char> gguf_bytes_;
  GgufHeader gguf_;
  int64_t gguf_parts_ = 0, gguf_tensors_ = -1;
  bool interleaves_heads_ = false;

  std::vector<WeightSlot> slots_;
  std::vector<const TensorInfo*> tensors_;         // beside slots_: where they stand in the files
  std::vector<void*> places_;                      // beside slots_: where they go
  std::string layout_;
  bool planned_ = false;
};

}  // namespace qwasm
