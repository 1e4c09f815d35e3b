"""Writes the smallest GGUF models that load, as seeds of the fuzz target:   gguf_seeds.py tests/fuzz/corpus/gguf"""
import sys

import gguf
import numpy as np

WIDTH, TOKENS = 32, ["a", "b", "ab", "<|im_end|>"]


def write(path, arch, kind):
    random = np.random.default_rng(1)
    writer = gguf.GGUFWriter(path, arch)
    for add in (writer.add_embedding_length, writer.add_feed_forward_length, writer.add_context_length):
        add(WIDTH)
    writer.add_block_count(1)
    writer.add_head_count(2)
    writer.add_head_count_kv(1)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen2")
    writer.add_token_list(TOKENS)
    writer.add_token_types([1, 1, 1, 3])
    writer.add_token_merges(["a b"])
    writer.add_eos_token_id(3)
    writer.add_chat_template("{{ messages[0].content }}")

    def add(name, *shape):
        values = random.standard_normal(shape).astype(np.float32)
        if len(shape) == 1:
            return writer.add_tensor(name, values)
        writer.add_tensor(name, gguf.quants.quantize(values, kind), raw_dtype=kind)

    add("token_embd.weight", len(TOKENS), WIDTH)
    add("output_norm.weight", WIDTH)
    for name in ("attn_norm", "ffn_norm"):
        add(f"blk.0.{name}.weight", WIDTH)
    for name in ("attn_q", "attn_output", "ffn_gate", "ffn_up", "ffn_down"):
        add(f"blk.0.{name}.weight", WIDTH, WIDTH)
    for name in ("attn_k", "attn_v"):
        add(f"blk.0.{name}.weight", WIDTH // 2, WIDTH)
    if arch == "qwen3":
        for name in ("attn_q_norm", "attn_k_norm"):
            add(f"blk.0.{name}.weight", WIDTH // 2)
    else:
        add("rope_freqs.weight", WIDTH // 4)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


for arch, kind in (("qwen3", gguf.GGMLQuantizationType.Q4_0), ("llama", gguf.GGMLQuantizationType.Q8_0)):
    write(f"{sys.argv[1]}/{arch}.gguf", arch, kind)
