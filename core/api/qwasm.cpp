// The C ABI: handles, argument checks, and nothing else.
#include "core/api/qwasm.h"

#include <algorithm>
#include <cstdlib>
#include <string>

#include "core/base/buffer.h"
#include "core/engine/engine.h"
#include "core/kernels/kernels.h"

using qwasm::Code;
using qwasm::Session;
using qwasm::Status;

struct qw_engine {
  explicit qw_engine(const qwasm::EngineOptions& options) : engine(options) {}
  qwasm::Engine engine;
  std::vector<int32_t> ids;  // result of qw_tokenize
  std::string text;          // result of qw_detokenize, qw_info, qw_inspect
};

struct qw_session {
  std::unique_ptr<qwasm::Session> session;
  qwasm::Engine& engine;
  std::string logprobs;  // result of qw_logprobs
};

struct qw_gguf {
  std::unique_ptr<qwasm::GgufExport> file;
  std::span<const uint8_t> piece;
};

namespace {

thread_local Status last_failure;

// What a function returns: its result, or the negative code of a failure that is remembered.
int32_t give(Status status, int64_t result = 0) {
  if (status.ok()) return static_cast<int32_t>(result);
  last_failure = std::move(status);
  return -static_cast<int32_t>(last_failure.code());
}

Status null_argument(const char* name) { return qwasm::error(Code::kInvalidArgument, "%s is null", name); }

bool is_whole(double value) { return value >= 0 && value <= 0x1p53 && value == static_cast<double>(static_cast<int64_t>(value)); }

const char* give_text(qw_engine* engine, Status status) {
  if (status.ok()) return engine->text.c_str();
  give(std::move(status));
  return nullptr;
}

}  // namespace

extern "C" {

const char* qw_kernels(void) { return qwasm::default_kernels({}).name; }
const char* qw_error_message(void) { return last_failure.message().c_str(); }
int32_t qw_error_code(void) { return static_cast<int32_t>(last_failure.code()); }

qw_engine* qw_engine_new(const char* options) {
  qwasm::EngineOptions parsed;
  if (give(qwasm::parse_engine_options(options ? options : "{}", &parsed)) < 0) return nullptr;
  return new qw_engine(parsed);
}

void qw_engine_free(qw_engine* engine) { delete engine; }

int32_t qw_next_want(qw_engine* engine, qw_want* want) {
  if (!engine || !want) return give(null_argument(engine ? "want" : "engine"));
  const int32_t state = give(engine->engine.loader().require_no_failure());
  if (state < 0) return state;
  uint32_t id = 0;
  if (const qwasm::Loader::Want* next = engine->engine.loader().next(&id)) {
    *want = {static_cast<double>(next->offset), static_cast<double>(next->length), next->file.c_str(), id, next->optional};
    return QW_WANT_FILLED;
  }
  return engine->engine.loader().loaded() ? QW_WANT_LOADED : QW_WANT_NONE;
}

int32_t qw_push(qw_engine* engine, uint32_t id, const void* bytes, double length, double file_size) {
  if (!engine) return give(null_argument("engine"));
  if (!bytes && length > 0) return give(null_argument("bytes"));
  if (!is_whole(length) || !(file_size == -1 || is_whole(file_size))) {
    return give(qwasm::error(Code::kInvalidArgument, "qw_push: expected whole numbers of bytes, found length %g and file_size %g", length, file_size));
  }
  const std::span<const char> span(static_cast<const char*>(bytes), static_cast<size_t>(length));
  const int32_t pushed = give(engine->engine.loader().push(id, span, static_cast<int64_t>(file_size)));
  return pushed < 0 ? pushed : give(engine->engine.finish_loading());
}

int32_t qw_push_missing(qw_engine* engine, uint32_t id) {
  if (!engine) return give(null_argument("engine"));
  const int32_t pushed = give(engine->engine.loader().push_missing(id));
  return pushed < 0 ? pushed : give(engine->engine.finish_loading());
}

double qw_load_bytes(qw_engine* engine) { return engine ? static_cast<double>(engine->engine.loader().weight_bytes()) : 0; }

const char* qw_weights_layout(qw_engine* engine) { return engine ? engine->engine.loader().weights_layout().c_str() : ""; }
void* qw_weights(qw_engine* engine) { return engine ? engine->engine.weights_memory().data() : nullptr; }
double qw_weights_bytes(qw_engine* engine) { return engine ? static_cast<double>(engine->engine.weights_memory().size()) : 0; }

int32_t qw_restore_weights(qw_engine* engine) {
  if (!engine) return give(null_argument("engine"));
  const int32_t restored = give(engine->engine.loader().restore_weights());
  return restored < 0 ? restored : give(engine->engine.finish_loading());
}

double qw_refused_bytes(void) { return static_cast<double>(qwasm::refused_bytes()); }

void* qw_alloc(size_t bytes) { return std::malloc(bytes > 0 ? bytes : 1); }
void qw_free(void* address) { std::free(address); }

const char* qw_info(qw_engine* engine) {
  if (!engine) return give(null_argument("engine")), nullptr;
  return give_text(engine, engine->engine.info(&engine->text));
}

const char* qw_inspect(qw_engine* engine, double context, double bandwidth) {
  if (!engine) return give(null_argument("engine")), nullptr;
  if (!is_whole(context) || context < 1 || context > 0x1p30 || !(bandwidth > 0 && bandwidth < 1e18)) {
    give(qwasm::error(Code::kInvalidArgument, "qw_inspect: expected context from 1 to 2^30 and bandwidth above 0, found %g and %g", context, bandwidth));
    return nullptr;
  }
  return give_text(engine, engine->engine.inspect(static_cast<int64_t>(context), bandwidth, &engine->text));
}

double qw_read_bandwidth(qw_engine* engine) {
  if (!engine) return give(null_argument("engine"));
  double bytes_per_second = 0;
  const int32_t result = give(engine->engine.read_bandwidth(&bytes_per_second));
  return result < 0 ? result : bytes_per_second;
}

qw_gguf* qw_gguf_new(qw_engine* engine, const char* name) {
  if (!engine) return give(null_argument("engine")), nullptr;
  std::unique_ptr<qwasm::GgufExport> file;
  if (give(engine->engine.export_gguf(name ? name : "", &file)) < 0) return nullptr;
  return new qw_gguf{std::move(file), {}};
}

void qw_gguf_free(qw_gguf* gguf) { delete gguf; }
double qw_gguf_bytes(qw_gguf* gguf) { return gguf ? static_cast<double>(gguf->file->bytes()) : 0; }

int32_t qw_gguf_next(qw_gguf* gguf) {
  if (!gguf) return give(null_argument("gguf"));
  Status status = gguf->file->next(&gguf->piece);
  return give(std::move(status), static_cast<int64_t>(gguf->piece.size()));
}

const void* qw_gguf_piece(qw_gguf* gguf) { return gguf ? gguf->piece.data() : nullptr; }

int32_t qw_tokenize(qw_engine* engine, const char* text, size_t length, int32_t honour_added, uint32_t inert_mark) {
  if (!engine || (!text && length > 0)) return give(null_argument(engine ? "text" : "engine"));
  const qwasm::Tokenizer* tokenizer = nullptr;
  Status status = engine->engine.tokenizer(&tokenizer);
  if (status.ok()) status = tokenizer->encode({text, length}, honour_added != 0, inert_mark, &engine->ids);
  return give(std::move(status), static_cast<int64_t>(engine->ids.size()));
}

const int32_t* qw_ids(qw_engine* engine) { return engine ? engine->ids.data() : nullptr; }

int32_t qw_detokenize(qw_engine* engine, const int32_t* ids, size_t count, int32_t skip_special) {
  if (!engine || (!ids && count > 0)) return give(null_argument(engine ? "ids" : "engine"));
  const qwasm::Tokenizer* tokenizer = nullptr;
  Status status = engine->engine.tokenizer(&tokenizer);
  if (status.ok()) engine->text = tokenizer->decode({ids, count}, skip_special != 0);
  return give(std::move(status), static_cast<int64_t>(engine->text.size()));
}

const char* qw_text(qw_engine* engine) { return engine ? engine->text.c_str() : ""; }

qw_session* qw_session_new(qw_engine* engine) {
  if (!engine) return give(null_argument("engine")), nullptr;
  std::unique_ptr<qwasm::Session> session;
  if (give(engine->engine.new_session(&session)) < 0) return nullptr;
  return new qw_session{std::move(session), engine->engine, {}};
}

void qw_session_free(qw_session* session) { delete session; }

int32_t qw_set_sampling(qw_session* session, const char* options) {
  if (!session) return give(null_argument("session"));
  qwasm::SamplingOptions parsed;
  const int32_t result = give(qwasm::parse_sampling_options(options ? options : "{}", &parsed));
  return result < 0 ? result : give(session->session->set_sampling(std::move(parsed)));
}

int32_t qw_set_prompt(qw_session* session, const int32_t* ids, size_t count) {
  if (!session || (!ids && count > 0)) return give(null_argument(session ? "ids" : "session"));
  int64_t kept = 0;
  Status status = session->session->set_prompt({ids, count}, &kept);
  return give(std::move(status), kept);
}

int32_t qw_prefill(qw_session* session, int32_t max_tokens, int32_t logits_rows) {
  if (!session) return give(null_argument("session"));
  int64_t remaining = 0;
  Status status = session->session->prefill(max_tokens, logits_rows, &remaining);
  return give(std::move(status), remaining);
}

int32_t qw_append(qw_session* session, int32_t length, const int32_t* ids, size_t count) {
  if (!session || (!ids && count > 0)) return give(null_argument(session ? "ids" : "session"));
  return give(session->session->append(length, {ids, count}));
}

int32_t qw_step(qw_session* session) {
  if (!session) return give(null_argument("session"));
  int32_t id = 0;
  const int32_t result = qw_step_many(&session, 1, &id);
  return result < 0 ? result : id < 0 ? give(session->session->stepped()) : id;
}

int32_t qw_step_many(qw_session* const* sessions, int32_t count, int32_t* ids) {
  if (!sessions || !ids) return give(null_argument(sessions ? "ids" : "sessions"));
  Session* batch[Session::kMostAtOnce];
  const auto size = static_cast<size_t>(count);
  bool good = count > 0 && size <= Session::kMostAtOnce;
  for (size_t i = 0; good && i < size; ++i) {
    batch[i] = sessions[i] ? sessions[i]->session.get() : nullptr;
    good = batch[i] && batch[i]->shares_engine(*batch[0]) && std::find(batch, batch + i, batch[i]) == batch + i;
  }
  if (!good) return give(qwasm::error(Code::kInvalidArgument, "qw_step_many: expected 1 to 16 sessions of one engine, each of them once"));
  Session::step({batch, size});
  for (size_t i = 0; i < size; ++i) ids[i] = batch[i]->stepped().ok() ? batch[i]->last_token() : -static_cast<int32_t>(batch[i]->stepped().code());
  return QW_OK;
}

const char* qw_session_error(qw_session* session) { return session ? session->session->stepped().message().c_str() : ""; }

int32_t qw_set_grammar(qw_session* session, const char* gbnf) {
  if (!session) return give(null_argument("session"));
  return give(session->engine.set_grammar(*session->session, gbnf));
}

int32_t qw_is_complete(qw_session* session) { return session ? session->session->is_complete() : give(null_argument("session")); }

const float* qw_logits(qw_session* session) { return session ? session->session->logits() : nullptr; }

const float* qw_hidden(qw_session* session) {
  if (!session) return give(null_argument("session")), nullptr;
  const float* hidden = session->session->hidden();
  if (!hidden) give(qwasm::error(Code::kWrongState, "qw_hidden: the prompt has not been run to its end"));
  return hidden;
}

const char* qw_logprobs(qw_session* session, int32_t top) {
  if (!session) return give(null_argument("session")), nullptr;
  return give(session->session->logprobs(top, &session->logprobs)) < 0 ? nullptr : session->logprobs.c_str();
}

int32_t qw_piece(qw_session* session) {
  return session ? static_cast<int32_t>(session->session->piece().size()) : give(null_argument("session"));
}

int32_t qw_flush(qw_session* session) {
  if (!session) return give(null_argument("session"));
  session->session->flush();
  return static_cast<int32_t>(session->session->piece().size());
}

const char* qw_piece_text(qw_session* session) { return session ? session->session->piece().data() : nullptr; }

int32_t qw_length(qw_session* session) { return session ? static_cast<int32_t>(session->session->length()) : give(null_argument("session")); }
const int32_t* qw_tokens(qw_session* session) { return session ? session->session->tokens().data() : nullptr; }
int32_t qw_cached(qw_session* session) { return session ? static_cast<int32_t>(session->session->cached()) : give(null_argument("session")); }

void* qw_cache_block(qw_session* session, int32_t index) { return session ? session->session->cache_block(index) : nullptr; }

int32_t qw_restore(qw_session* session, const int32_t* ids, size_t count) {
  if (!session || (!ids && count > 0)) return give(null_argument(session ? "ids" : "session"));
  return give(session->session->restore({ids, count}));
}

}  // extern "C"
