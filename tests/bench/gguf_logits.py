"""Answers questions about a GGUF file by native llama.cpp:   gguf_logits.py FILE.gguf THREADS f16|f32

Each line of standard input is a question: {"ids": […]} gives the logits after each of them, {"text": …} its ids. The answer is a line of JSON,
{"floats": N} followed by N float32, or {"ids": […]}. The third argument is how keys and values are kept.
"""
import json
import os
import sys

import llama_cpp
import numpy as np

CONTEXT = 2048

path, threads, kv = sys.argv[1:]
out = os.fdopen(os.dup(1), "wb")
for number in (1, 2):  # llama.cpp says a lot
    os.dup2(os.open(os.devnull, os.O_WRONLY), number)


def answer(about, data=b""):
    out.write(json.dumps(about).encode() + b"\n" + data)
    out.flush()


def fail(sentence):
    answer({"error": sentence})
    sys.exit(1)


llama_cpp.llama_backend_init()
model_parameters = llama_cpp.llama_model_default_params()
model_parameters.n_gpu_layers = 0
model = llama_cpp.llama_model_load_from_file(path.encode(), model_parameters)
if not model:
    fail(f"llama.cpp cannot load {path}")
parameters = llama_cpp.llama_context_default_params()
parameters.n_ctx = parameters.n_batch = parameters.n_ubatch = CONTEXT
parameters.n_threads = parameters.n_threads_batch = int(threads)
parameters.type_k = parameters.type_v = {"f32": 0, "f16": 1}[kv]
context = llama_cpp.llama_init_from_model(model, parameters)
if not context:
    fail("llama.cpp has no memory for its context")
memory = llama_cpp.llama_get_memory(context)
vocabulary = llama_cpp.llama_model_get_vocab(model)
vocab_size = llama_cpp.llama_vocab_n_tokens(vocabulary)


def logits(ids):
    if len(ids) > CONTEXT:
        fail(f"{len(ids)} tokens are more than {CONTEXT}")
    llama_cpp.llama_memory_clear(memory, True)
    batch = llama_cpp.llama_batch_init(len(ids), 0, 1)
    batch.n_tokens = len(ids)
    for i, token in enumerate(ids):
        batch.token[i], batch.pos[i], batch.n_seq_id[i], batch.seq_id[i][0], batch.logits[i] = token, i, 1, 0, 1
    failed = llama_cpp.llama_decode(context, batch)
    llama_cpp.llama_batch_free(batch)
    if failed:
        fail("llama_decode failed")
    rows = llama_cpp.llama_get_logits(context)
    return np.ctypeslib.as_array(rows, (len(ids) * vocab_size,)).astype("<f4").tobytes()


def tokenize(text):
    data = text.encode()
    room = (llama_cpp.llama_token * (len(data) + 8))()
    count = llama_cpp.llama_tokenize(vocabulary, data, len(data), room, len(room), True, True)
    return list(room[:count]) if count >= 0 else fail("llama_tokenize failed")


for line in sys.stdin:
    question = json.loads(line)
    if "text" in question:
        answer({"ids": tokenize(question["text"])})
    else:
        data = logits(question["ids"])
        answer({"floats": len(data) // 4}, data)
