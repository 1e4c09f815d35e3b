/* qwasm.h: the whole C surface of the core. The wasm export list is made from this file.
 *
 * Conventions. Strings are UTF-8. A function that can fail returns a negative qw_status (-QW_INVALID_FILE, …) and leaves its
 * sentence in qw_error_message(); everything else it returns is >= 0. Nothing prints, aborts or throws on any input. File offsets
 * and lengths are doubles that hold whole numbers below 2^53. One thread at a time may use an engine and what belongs to it.
 * Pointers that a function returns stay valid until the next call with the same handle, unless said otherwise. */
#ifndef QWASM_H
#define QWASM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum qw_status {
  QW_OK = 0,
  QW_INVALID_ARGUMENT = 1, /* an option or argument outside its domain */
  QW_INVALID_FILE = 2,     /* bytes that break their file's format */
  QW_MISSING = 3,          /* a file, tensor or field that must be there is not */
  QW_UNSUPPORTED = 4,      /* well-formed, but not implemented */
  QW_OUT_OF_MEMORY = 5,
  QW_CONTEXT_OVERFLOW = 6, /* more tokens than the context length */
  QW_NOT_FINITE = 7,       /* NaN or infinity in weights or logits */
  QW_WRONG_STATE = 8,      /* a call out of its order */
  QW_NO_TOKENIZER = 9      /* a text call on a model that came without a tokenizer */
} qw_status;

typedef struct qw_engine qw_engine;   /* a model, its tokenizer and its threads: loading, then ready */
typedef struct qw_session qw_session; /* one sequence of tokens: its KV cache, sampler and text decoder */
typedef struct qw_gguf qw_gguf;       /* a model on its way into a GGUF file */

/* The name of the kernels this module runs: "relaxed", "simd" or "scalar". */
const char* qw_kernels(void);

/* The sentence of the last failure; empty before the first. */
const char* qw_error_message(void);

/* ---- loading: want / push ---------------------------------------------------------------------------------------------------
 * The core says which bytes it wants, the caller brings them in any order. */

/* `options`: JSON object; every key may be left out:
 *   "parts":          "model" (default), "tokenizer" (no weights are read) or "headers" (config and tensor headers, for qw_inspect)
 *   "dtype":          "exact" (weights as stored, float32 arithmetic), "stored" (the same values, of quantized files in the form that is
 *                     multiplied fast; see core/quant/format.h), "q8" or "q4" (made while loading; see core/quant/panel.h), or "auto": q8 for up
 *                     to 1e9 parameters where its weights fit into memory_budget, else q4
 *   "memory_budget":  bytes that the weights may take; default: no limit
 *   "gguf":           the model is this GGUF file, or all parts of the one whose part it is; default: a folder as Hugging Face has it
 *   "kv":             "f32", "f16" or "q8" (see core/quant/cache_block.h), or "auto": f32 where arithmetic is in float32 (dtype "exact", and
 *                     "stored" of a file of floats), else f16
 *   "context_length": tokens, 1 … 2^24; default min(max_position_embeddings, 4096)
 *   "threads":        1 …; clamped to the pool that the module was started with
 *   "choose_threads": true: uses fewer of them where that decodes as fast, by a measurement of some 30 ms after loading
 * NULL on failure (qw_error_message and qw_error_code say why). */
qw_engine* qw_engine_new(const char* options);
void qw_engine_free(qw_engine* engine);

/* The qw_status of the last failure, for functions that return a pointer. */
int32_t qw_error_code(void);

typedef struct qw_want {
  double offset;     /* first byte in the file */
  double length;     /* bytes; 0 = the whole file, whatever its length */
  const char* file;  /* name inside the model's folder; valid until this want is answered */
  uint32_t id;       /* to answer with */
  uint32_t optional; /* 1: the file may be absent (answer with qw_push_missing) */
} qw_want;

enum { QW_WANT_NONE = 0, QW_WANT_FILLED = 1, QW_WANT_LOADED = 2 };

/* The next range to bring: QW_WANT_FILLED (`want` is filled; every range is handed out once), QW_WANT_NONE (answer an
 * outstanding want first) or QW_WANT_LOADED (everything is there). Wants of one file come in the order of their offsets. */
int32_t qw_next_want(qw_engine* engine, qw_want* want);

/* Answers a want. `length` bytes at `bytes` (copied or converted before the call returns); for a ranged want exactly the bytes asked,
 * or fewer where the file ends early. `file_size`: bytes of the whole file, or -1 where the transport does not know. A failure ends
 * the loading: the engine then only accepts qw_engine_free. */
int32_t qw_push(qw_engine* engine, uint32_t id, const void* bytes, double length, double file_size);

/* Answers a want whose file does not exist. For a file that must exist this is the failure QW_MISSING. */
int32_t qw_push_missing(qw_engine* engine, uint32_t id);

/* Bytes of weights that loading fetches in all; 0 until the headers were read. */
double qw_load_bytes(qw_engine* engine);

/* ---- kept weights -----------------------------------------------------------------------------------------------------------
 * Making q8 or q4 of a model takes seconds, and its files are four times as large. A caller may keep the weights' memory of a loaded
 * model, and next time, once the headers were read, write it back instead of bringing the rows. That the bytes are the same, and that
 * the files are, is for the caller to make sure. */

/* The name of how the weights stand in memory, such as "q4-0123456789abcdef": of equal files, equal names mean equal bytes. Empty before the
 * headers were read (which is the case as soon as qw_load_bytes is not 0). */
const char* qw_weights_layout(qw_engine* engine);

/* The weights' memory, and its bytes; NULL and 0 where the layout is empty. */
void* qw_weights(qw_engine* engine);
double qw_weights_bytes(qw_engine* engine);

/* The caller wrote all of the weights' memory: their rows are not wanted any more, and loading ends. */
int32_t qw_restore_weights(qw_engine* engine);

/* After a trap, the only call that may follow: bytes of the small allocation whose failure was the trap, 0 where it was something else. */
double qw_refused_bytes(void);

/* Memory for qw_push and other arguments: an address, or NULL where there is no memory. */
void* qw_alloc(size_t bytes);
void qw_free(void* address);

/* ---- what was loaded -------------------------------------------------------------------------------------------------------- */

/* JSON object about the loaded model:
 *   architecture, model_type (of config.json), parameters, layers, hidden_size, vocab_size, max_position_embeddings, context_length,
 *   key_value_heads, dtype, kv, stored_dtypes (["BF16"]), weight_bytes (in memory), kv_bytes_per_token, threads, kernels,
 *   notes (sentences a person should see, such as a context beyond max_position_embeddings),
 *   identity (a word that differs where sessions of one model are of no use to another: it covers config, formats and parts of all weights),
 *   eos_token_ids ([ids], in order), generation_config (object as in the file, or null),
 *   has_tokenizer, added_tokens ([{id, content, special}]), known_tokens (ids that have a token),
 *   begin_ids, end_ids (ids that transformers puts around a whole text, such as Llama 3's <|begin_of_text|>; qw_tokenize does not),
 *   chat_templates (object name → Jinja text; "default" is the ordinary one; empty where the model has none),
 *   special_tokens (object name, such as eos_token → text, from tokenizer_config.json).
 * For parts "tokenizer" the fields about weights are absent. NULL on failure. */
const char* qw_info(qw_engine* engine);

/* Needs parts "headers" or "model". JSON object with what config.json and the tensor headers say of the architecture; see core/engine/inspect.h.
 * `context`: tokens at which operations and memory are counted (>= 1). `bandwidth`: bytes per second that memory delivers, for the lower
 * bound of decode time (> 0). NULL on failure. */
const char* qw_inspect(qw_engine* engine, double context, double bandwidth);

/* Bytes per second at which all threads together read the weights' memory, the best of three times: decoding reads them once a token, so
 * this bounds its speed. Takes as long as a few tokens. A negative qw_status on failure. */
double qw_read_bandwidth(qw_engine* engine);

/* ---- GGUF -------------------------------------------------------------------------------------------------------------------
 * A loaded model as a file that llama.cpp and others read, in pieces: see core/engine/export.h. `name`: what the file calls the model, or NULL. */
qw_gguf* qw_gguf_new(qw_engine* engine, const char* name); /* NULL on failure */
void qw_gguf_free(qw_gguf* gguf);                          /* before its engine */
double qw_gguf_bytes(qw_gguf* gguf);                       /* of the whole file */

/* The next piece in the file's order: its length, 0 at the end; its bytes are then at qw_gguf_piece. */
int32_t qw_gguf_next(qw_gguf* gguf);
const void* qw_gguf_piece(qw_gguf* gguf);

/* ---- text ------------------------------------------------------------------------------------------------------------------- */

/* Ids of `length` bytes of UTF-8 at `text`; returns their count, they stand at qw_ids(engine).
 * honour_added: 1 = added tokens (control tokens such as <|im_end|>) in the text become their ids, as Hugging Face does; 0 = all is plain text.
 * inert_mark: 0, or a code point. An added token in whose occurrence the mark stands right after the first character is plain text, and all
 * marks are removed before plain text is encoded: this is how text that people wrote stays inert (with honour_added = 1). */
int32_t qw_tokenize(qw_engine* engine, const char* text, size_t length, int32_t honour_added, uint32_t inert_mark);
const int32_t* qw_ids(qw_engine* engine);

/* Text of ids; returns its length in bytes, it stands at qw_text(engine). Ids that have no token give nothing. skip_special: 1 = tokens
 * marked special are left out. Bytes that are not UTF-8 become U+FFFD as Hugging Face's byte-level decoder does. */
int32_t qw_detokenize(qw_engine* engine, const int32_t* ids, size_t count, int32_t skip_special);
const char* qw_text(qw_engine* engine);

/* ---- sequences -------------------------------------------------------------------------------------------------------------- */

qw_session* qw_session_new(qw_engine* engine); /* NULL on failure */
void qw_session_free(qw_session* session);     /* before its engine */

/* `options`: JSON object, all keys optional: "temperature" (>= 0, default 0 = greedy), "top_k" (0 = off), "top_p" (0 … 1, 1 = off),
 * "min_p" (0 … 1, 0 = off), "repetition_penalty" (> 0, 1 = off), "presence_penalty" and "frequency_penalty" (-2 … 2, 0 = off; over generated
 * tokens, not the prompt's), "logit_bias" ({"id": -100 … 100}, what is added to the logits of ids), "seed" (0 … 2^53 - 1, default 0). Resets
 * the random numbers to the seed. The order in which they act is in core/sample/sampler.h. */
int32_t qw_set_sampling(qw_session* session, const char* options);

/* Makes `ids` the sequence. Keeps the longest common prefix that is already in the KV cache (never the whole prompt: its last token is
 * always run) and returns how many tokens were kept. Resets the text decoder. */
int32_t qw_set_prompt(qw_session* session, const int32_t* ids, size_t count);

/* Runs up to `max_tokens` prompt tokens, 64 at the most; returns how many remain. At 0 the logits of the last token are there.
 * `logits_rows`: for that many trailing tokens of this slice the logits are kept at qw_logits (rows × vocab_size, float32); 0 = none,
 * except the prompt's last token; -1 = not even those, for whom qw_hidden is enough: the head, which is much of a small model, is not run. */
int32_t qw_prefill(qw_session* session, int32_t max_tokens, int32_t logits_rows);

/* Puts `ids` behind the first `length` tokens of the sequence, in place of what steps drew there and no step has run yet: as if they had been drawn.
 * The next step runs them. Resets the text decoder. */
int32_t qw_append(qw_session* session, int32_t length, const int32_t* ids, size_t count);

/* Draws the next token from the logits, appends it and returns its id; where the previous step's token has not been run yet, runs it first.
 * The token's text is then at qw_piece. -QW_CONTEXT_OVERFLOW when the sequence is full. */
int32_t qw_step(qw_session* session);

/* The same for 1 to 16 distinct sessions of one engine as one batch, which reads the weights once for all; each gives what it gives alone, bit for
 * bit. ids[i] becomes the token of sessions[i], or a negative qw_status whose sentence is at qw_session_error: one that fails does not touch the
 * others. */
int32_t qw_step_many(qw_session* const* sessions, int32_t count, int32_t* ids);
const char* qw_session_error(qw_session* session);

/* What qw_step draws from now on follows a grammar, from its beginning: GBNF, llama.cpp's notation (see core/sample/grammar_graph.h); NULL: all is
 * free. End tokens are drawn exactly where the grammar may end, other added tokens never. Where only one text can follow, qw_step gives its
 * tokens without drawing, and runs them together with the next one that is drawn. Needs a tokenizer. */
int32_t qw_set_grammar(qw_session* session, const char* gbnf);

/* 1 where the grammar's text is whole and nothing can follow, so that no end token is needed; else 0. */
int32_t qw_is_complete(qw_session* session);

/* Logits of the last prefill or step (row-major: rows of vocab_size float32). The pointer is valid until the next call with the session. */
const float* qw_logits(qw_session* session);

/* The hidden state of the prompt's last token behind the model's last norm, as the head reads it: hidden_size float32. NULL (QW_WRONG_STATE) where
 * the prompt has not been run to its end. The pointer is valid until the next call with the session. */
const float* qw_hidden(qw_session* session);

/* JSON object about the sequence's last token, which a step drew or qw_append put there: {id, logprob, bytes, top: [{id, logprob, bytes}]}. Log-probabilities are those of
 * the model itself (log-softmax of its logits, natural logarithm, before any sampling option), rounded to float32. `top`: how many of the
 * likeliest tokens are told, 0 … 20, the likeliest first and of equals the lower id. `bytes`: what a token stands for, which need not be whole
 * characters; empty for ids without a token. Valid until the next call of this function. NULL on failure. */
const char* qw_logprobs(qw_session* session, int32_t top);

/* Text that the last step completed (length returned; bytes at qw_piece_text): whole characters, special tokens left out. */
int32_t qw_piece(qw_session* session);
/* What the decoder still holds: a character cut off at the end, as U+FFFD. Same result form. */
int32_t qw_flush(qw_session* session);
const char* qw_piece_text(qw_session* session);

/* Tokens in the sequence, which are prompt and steps, and the tokens themselves; and how many of them, from the first, are in the KV cache. */
int32_t qw_length(qw_session* session);
const int32_t* qw_tokens(qw_session* session);
int32_t qw_cached(qw_session* session);

/* Saving, copying and restoring a sequence. Block i of the KV cache holds the tokens 256 i … 256 i + 255: for each layer the keys and then the values of
 * each head (core/quant/cache_block.h), 256 · kv_bytes_per_token bytes in all. NULL where there is no such block. */
void* qw_cache_block(qw_session* session, int32_t index);

/* Makes `ids` a sequence that is in the KV cache: the caller then writes its blocks, with what an engine of the same "identity" had in them for the same
 * tokens. qw_set_prompt keeps them. */
int32_t qw_restore(qw_session* session, const int32_t* ids, size_t count);

#ifdef __cplusplus
}
#endif
#endif
