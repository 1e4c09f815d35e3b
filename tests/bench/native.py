"""The speed of llama.cpp itself, without a host language in its loop:   native.py FILE.gguf '{"threads": 2, …}'

Prints one line of JSON with the best prefill and decode rates, as all the contestants do (see shape.mjs).
"""
import ctypes
import json
import os
import sys
import time

import llama_cpp

path, shape = sys.argv[1], json.loads(sys.argv[2])
prompt_tokens, decode_tokens = shape["promptTokens"], shape["decodeTokens"]
os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # llama.cpp says a lot


def fail(sentence):
    print(sentence)
    sys.exit(1)


llama_cpp.llama_backend_init()
model_parameters = llama_cpp.llama_model_default_params()
model_parameters.n_gpu_layers = 0
model = llama_cpp.llama_model_load_from_file(path.encode(), model_parameters)
parameters = llama_cpp.llama_context_default_params()
parameters.n_ctx, parameters.n_batch, parameters.n_ubatch = 1024, 512, 512
parameters.n_threads = parameters.n_threads_batch = shape["threads"]
context = llama_cpp.llama_init_from_model(model, parameters) if model else None
if not context:
    fail(f"llama.cpp cannot load {path}")
memory = llama_cpp.llama_get_memory(context)
vocab_size = llama_cpp.llama_vocab_n_tokens(llama_cpp.llama_model_get_vocab(model))


def decode(ids):
    array = (ctypes.c_int * len(ids))(*ids)  # the batch only points to it
    if llama_cpp.llama_decode(context, llama_cpp.llama_batch_get_one(array, len(ids))):
        fail("llama_decode failed")
    llama_cpp.llama_synchronize(context)


def some_ids(count):
    return [1000 + i * 7919 % (vocab_size - 1000) for i in range(count)]


best = {"prefill": 0.0, "decode": 0.0}
for _ in range(shape["times"]):
    llama_cpp.llama_memory_clear(memory, True)
    start = time.perf_counter()
    decode(some_ids(prompt_tokens))
    best["prefill"] = max(best["prefill"], prompt_tokens / (time.perf_counter() - start))
    llama_cpp.llama_memory_clear(memory, True)
    decode([1000])
    start = time.perf_counter()
    for token in some_ids(decode_tokens):
        decode([token])
    best["decode"] = max(best["decode"], decode_tokens / (time.perf_counter() - start))
print(json.dumps(best))
