"""Writes small GGUF files of the golden models, and what transformers computes with their decoded weights.

    gguf_variants.py MODELS_DIR OUT_DIR [NAME...]

MODELS_DIR holds folders of Hugging Face models. For each variant OUT_DIR gets NAME.gguf (or its parts), and golden.json and golden.safetensors get its
cases: "<variant>.<case>.logits" (positions, vocabulary). Matrices are quantized by `gguf` for Python and decoded by it for transformers.
"""
import json
import os
import sys

import gguf
import numpy as np
import tokenizers
import torch
import transformers
from safetensors.torch import save_file
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import AutoModelForCausalLM

QWEN2 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
CORPUS = ["The tokens of a small model stand in the file itself, and the merges that make them of bytes.",
          "There and then the reader reads the header: the names, the numbers, the places.\n\n  That's all there is to it."] * 4
TEXTS = ["The capital of France is", "that's  all\n\nthere", "3333+777", "cafe\u0301 Việt 🫠", "<|im_start|>user\nhi<|im_end|>\n<think>\n</think>", "\u0085 ſ it'ſ"]
TEMPLATE = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
CASES = {"short": [167, 79, 204, 335, 26, 39, 276], "long": [(i * i * 7 + 13 * i + 5) % 384 for i in range(40)]}
GREEDY_TOKENS = 12
KEPT_POSITIONS = 7

# name: folder of the model, storage type of its matrices, number of parts
VARIANTS = {
    "qwen3-f16": ("qwen3", "F16", 1),
    "qwen3-q8_0": ("qwen3", "Q8_0", 1),
    "qwen3-q4_0": ("qwen3", "Q4_0", 1),
    "qwen3-untied-bf16-v2": ("qwen3-untied-f16", "BF16", 1),
    "qwen3-yarn-q4_0": ("qwen3-yarn", "Q4_0", 1),
    "qwen3-parts-q8_0": ("qwen3", "Q8_0", 3),
    "qwen2-q8_0": ("qwen2", "Q8_0", 1),
    "llama3-rope-q8_0": ("llama3-rope", "Q8_0", 1),
    "smollm3-nope-q4_0": ("smollm3-nope", "Q4_0", 1),
}
NAMES = {"embed_tokens": "token_embd", "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm", "q_proj": "attn_q", "k_proj": "attn_k",
         "v_proj": "attn_v", "o_proj": "attn_output", "q_norm": "attn_q_norm", "k_norm": "attn_k_norm", "gate_proj": "ffn_gate", "up_proj": "ffn_up",
         "down_proj": "ffn_down", "norm": "output_norm", "lm_head": "output"}
INTERLEAVED = ("llama", "smollm3")


def make_tokenizer():
    """345 ids of 384: bytes and merges, two control tokens, two that are not special."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    split = pre_tokenizers.Split(Regex(QWEN2), "isolated")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([split, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=379, initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()), show_progress=False)
    tokenizer.train_from_iterator(CORPUS, trainer)
    tokenizer.add_special_tokens([AddedToken(t, special=True, normalized=False) for t in ("<|im_start|>", "<|im_end|>")])
    tokenizer.add_tokens([AddedToken(t, special=False, normalized=False) for t in ("<think>", "</think>")])
    return tokenizer


def write_tokenizer(writer, tokenizer):
    about = json.loads(tokenizer.to_str())
    tokens = [f"[PAD{i}]" for i in range(384)]
    types = [gguf.TokenType.UNUSED] * 384
    for text, i in about["model"]["vocab"].items():
        tokens[i], types[i] = text, gguf.TokenType.NORMAL
    for added in about["added_tokens"]:
        tokens[added["id"]] = added["content"]
        types[added["id"]] = gguf.TokenType.CONTROL if added["special"] else gguf.TokenType.USER_DEFINED
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen2")
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    writer.add_token_merges([" ".join(m) for m in about["model"]["merges"]])
    writer.add_eos_token_id(tokenizer.token_to_id("<|im_end|>"))
    writer.add_bos_token_id(tokenizer.token_to_id("<|im_start|>"))
    writer.add_add_bos_token(False)
    writer.add_chat_template([{"name": "default", "template": TEMPLATE}, {"name": "shout", "template": "{{ messages[0].content | upper }}"}])


def write_config(writer, config):
    rope = config.rope_parameters
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(rope["rope_theta"])
    if config.model_type == "qwen3":
        writer.add_key_length(config.head_dim)
        writer.add_value_length(config.head_dim)
    if rope["rope_type"] == "yarn":
        writer.add_rope_scaling_type(gguf.RopeScalingType.YARN)
        writer.add_rope_scaling_factor(rope["factor"])
        writer.add_rope_scaling_orig_ctx_len(rope["original_max_position_embeddings"])


def rope_factors(rope, head_dim):
    """By what llama.cpp divides the frequencies of Llama 3's scaling."""
    factors = []
    low, high, original = rope["low_freq_factor"], rope["high_freq_factor"], rope["original_max_position_embeddings"]
    for i in range(0, head_dim, 2):
        wavelength = 2 * np.pi * rope["rope_theta"] ** (i / head_dim)
        smooth = np.clip((original / wavelength - low) / (high - low), 0, 1)
        factors.append(1 / ((1 - smooth) / rope["factor"] + smooth))
    return np.array(factors, np.float32)


def interleave(values, heads):
    """Rows 0, n/2, 1, n/2 + 1, … of each head of n, which llama.cpp rotates in neighbours."""
    return values.reshape(heads, 2, values.shape[0] // heads // 2, -1).swapaxes(1, 2).reshape(values.shape)


def gguf_name(name):
    parts = name.split(".")
    ending = f"{NAMES[parts[-2]]}.{parts[-1]}"
    return f"blk.{parts[2]}.{ending}" if parts[1] == "layers" else ending


def store(writer, model, kind):
    """Adds all weights to the file, and leaves in the model what they decode to."""
    config = model.config
    for name, parameter in model.named_parameters():
        values = parameter.detach().numpy()
        stored = gguf.quants.quantize(values, kind) if values.ndim == 2 else values
        decoded = gguf.quants.dequantize(stored, kind) if values.ndim == 2 else values
        parameter.data.copy_(torch.from_numpy(decoded))
        if config.model_type in INTERLEAVED and ("q_proj" in name or "k_proj" in name):
            stored = interleave(stored, config.num_attention_heads if "q_proj" in name else config.num_key_value_heads)
        writer.add_tensor(gguf_name(name), stored, raw_dtype=kind if values.ndim == 2 else None)
    if config.rope_parameters["rope_type"] == "llama3":
        writer.add_tensor("rope_freqs.weight", rope_factors(config.rope_parameters, config.head_dim))


def continue_greedily(model, ids, tokenizer):
    """Ids that have no token are not drawn."""
    greedy, end, known = [], tokenizer.token_to_id("<|im_end|>"), tokenizer.get_vocab_size()
    while len(greedy) < GREEDY_TOKENS and end not in greedy:
        greedy.append(model(torch.tensor([ids + greedy])).logits[0, -1, :known].argmax().item())
    return greedy


def make(name, models_dir, out, tokenizer):
    folder, kind, parts = VARIANTS[name]
    model = AutoModelForCausalLM.from_pretrained(f"{models_dir}/{folder}", dtype=torch.float32, attn_implementation="eager").eval()
    path = f"{out}/{name}.gguf"
    writer = gguf.GGUFWriter(path, model.config.model_type, split_max_tensors=-(-len(list(model.parameters())) // parts) if parts > 1 else 0)
    writer.add_name(name)
    write_config(writer, model.config)
    write_tokenizer(writer, tokenizer)
    store(writer, model, gguf.GGMLQuantizationType[kind])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    if name.endswith("v2"):  # versions 2 and 3 differ in the version's number where bytes are little-endian
        with open(path, "r+b") as file:
            file.seek(4)
            file.write(b"\x02")
    cases, tensors = [], {}
    for case, ids in CASES.items():
        tensors[f"{name}.{case}.logits"] = model(torch.tensor([ids])).logits[0, -KEPT_POSITIONS:].contiguous()
        cases.append({"name": case, "ids": ids, "greedy": continue_greedily(model, ids, tokenizer)})
    print(name)
    return cases, tensors


def main(models_dir, out, *names):
    torch.set_grad_enabled(False)
    os.makedirs(out, exist_ok=True)
    tokenizer = make_tokenizer()
    golden, tensors = {}, {}
    for name in names or VARIANTS:
        golden[name], own = make(name, models_dir, out, tokenizer)
        tensors.update(own)
    texts = [{"text": text, "ids": tokenizer.encode(text, add_special_tokens=False).ids} for text in TEXTS]
    oracle = {"transformers": transformers.__version__, "torch": torch.__version__.split("+")[0], "tokenizers": tokenizers.__version__, "gguf": "0.19.0"}
    save_file(tensors, f"{out}/golden.safetensors")
    with open(f"{out}/golden.json", "w") as file:
        json.dump({"oracle": oracle, "models": golden, "texts": texts}, file, ensure_ascii=False, indent=1)


if __name__ == "__main__":
    main(*sys.argv[1:])
