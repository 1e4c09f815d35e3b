"""Writes a Qwen3 model of Hugging Face's layout as a GGUF file:   to_gguf.py MODEL_FOLDER TOKENIZER_FOLDER OUT.gguf Q8_0|Q4_0

Reads one BF16 safetensors file with numpy alone. The tokenizer may lie elsewhere, since models of random weights come without one.
"""
import json
import re
import sys
from pathlib import Path

import gguf
import numpy as np

LAYER_NAMES = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
}
OTHER_NAMES = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}
FILE_TYPES = {"Q4_0": gguf.LlamaFileType.MOSTLY_Q4_0, "Q8_0": gguf.LlamaFileType.MOSTLY_Q8_0}


def read_tensors(path):
    """Yields (name, float32 array) of every tensor."""
    data = np.memmap(path, np.uint8, "r")
    header_length = int(data[:8].view("<u8")[0])
    for name, about in json.loads(bytes(data[8 : 8 + header_length])).items():
        if name == "__metadata__":
            continue
        if about["dtype"] != "BF16":
            sys.exit(f"{path}: tensor {name}: expected BF16, found {about['dtype']}")
        begin, end = (8 + header_length + offset for offset in about["data_offsets"])
        upper_halves = data[begin:end].view("<u2").astype(np.uint32) << 16
        yield name, upper_halves.view(np.float32).reshape(about["shape"])


def gguf_name(name):
    stem = name.removesuffix(".weight")
    layer = re.fullmatch(r"model\.layers\.(\d+)\.(.*)", stem)
    return f"blk.{layer[1]}.{LAYER_NAMES[layer[2]]}.weight" if layer else f"{OTHER_NAMES[stem]}.weight"


def write_shapes(writer, config):
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_key_length(config["head_dim"])
    writer.add_value_length(config["head_dim"])
    writer.add_rope_freq_base(config["rope_theta"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])


def write_tokenizer(writer, folder, config):
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    tokens = [f"[PAD{i}]" for i in range(config["vocab_size"])]
    types = [gguf.TokenType.UNUSED] * len(tokens)
    for token, i in tokenizer["model"]["vocab"].items():
        tokens[i], types[i] = token, gguf.TokenType.NORMAL
    for added in tokenizer["added_tokens"]:
        tokens[added["id"]] = added["content"]
        types[added["id"]] = gguf.TokenType.CONTROL if added["special"] else gguf.TokenType.USER_DEFINED
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen2")
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    writer.add_token_merges([merge if isinstance(merge, str) else " ".join(merge) for merge in tokenizer["model"]["merges"]])
    writer.add_eos_token_id(config["eos_token_id"])
    writer.add_bos_token_id(config["bos_token_id"])
    writer.add_add_bos_token(False)


def write_tensors(writer, path, config, format):
    kind = gguf.GGMLQuantizationType[format]
    for name, values in read_tensors(path):
        if name == "lm_head.weight" and config["tie_word_embeddings"]:
            continue
        if values.ndim == 1:
            writer.add_tensor(gguf_name(name), values)
        else:
            writer.add_tensor(gguf_name(name), gguf.quants.quantize(values, kind), raw_dtype=kind)


def main(folder, tokenizer_folder, out, format):
    folder = Path(folder)
    config = json.loads((folder / "config.json").read_text())
    writer = gguf.GGUFWriter(out, "qwen3")
    writer.add_name("random weights in Qwen3-0.6B's shapes")
    writer.add_file_type(FILE_TYPES[format])
    write_shapes(writer, config)
    write_tokenizer(writer, Path(tokenizer_folder), config)
    write_tensors(writer, folder / "model.safetensors", config, format)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


main(*sys.argv[1:])
