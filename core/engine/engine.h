// A model with its tokenizer, threads and options: what a handle of the C ABI stands for.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/engine/export.h"
#include "core/engine/load.h"
#include "core/engine/session.h"

namespace qwasm {

// The options of qw_engine_new; see core/api/qwasm.h.
struct EngineOptions {
  Loader::Options load;
  int64_t threads = 1;
  bool choose_threads = false;  // use fewer of them where that is as fast
  // Of the KV cache; none: float32 where the weights are exact, else float16.
  std::optional<CacheFormat> kv;
};
Status parse_engine_options(std::string_view json, EngineOptions* options);
Status parse_sampling_options(std::string_view json, SamplingOptions* options);

class Engine {
 public:
  explicit Engine(const EngineOptions& options)
      : options_(options), pool_(static_cast<int>(options.threads)), loader_(options.load, pool_, &model_) {}

  Loader& loader() { return loader_; }
  Buffer<uint8_t>& weights_memory() { return model_.weights.memory; }

  // After each answer to a want: once everything has come, makes the engine ready.
  Status finish_loading();

  // JSON text for qw_info and qw_inspect, and the tokenizer, sessions or speed of memory of a loaded model; before, kWrongState.
  Status info(std::string* json) const;
  Status inspect(int64_t context, double bandwidth, std::string* json) const;
  Status tokenizer(const Tokenizer** tokenizer) const;
  Status new_session(std::unique_ptr<Session>* session);
  Status read_bandwidth(double* bytes_per_second);
  Status export_gguf(std::string_view name, std::unique_ptr<GgufExport>* file);

  // What a session draws follows a grammar from now on; null: no grammar. See qw_set_grammar.
  Status set_grammar(Session& session, const char* gbnf);

 private:
  Status require_loaded() const;
  CacheFormat cache_format() const;
  Status require_weights() const;
  Status grammar(const Tokenizer& tokenizer, std::string_view gbnf, std::shared_ptr<Grammar>* grammar);

  EngineOptions options_;
  ThreadPool pool_;
  Model model_;
  Loader loader_;
  std::vector<int64_t> eos_token_ids_;
  int64_t context_length_ = 0;
  std::unique_ptr<Forward> forward_;
  std::unique_ptr<const TokenTable> token_table_;  // made for the first grammar
  struct KeptGrammar {
    std::string text;
    std::shared_ptr<Grammar> grammar;
  };
  static constexpr size_t kKeptGrammars = 8;
  KeptGrammar grammars_[kKeptGrammars];
  size_t oldest_grammar_ = 0;
  bool ready_ = false;
};

}  // namespace qwasm
