"""Tiny random models, one for each family and each thing that a loader can get wrong, each as a Hugging Face folder.

    make_variants.py OUT_DIR [NAME...]
"""
import json
import os
import sys

import torch
import transformers
from safetensors.torch import load_file, save_file

BASE = dict(vocab_size=384, hidden_size=64, intermediate_size=128, num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=2,
            head_dim=32, max_position_embeddings=512, rms_norm_eps=1e-6, rope_theta=1e6, bos_token_id=0, eos_token_id=1, pad_token_id=None,
            tie_word_embeddings=True)
YARN = dict(rope_type="yarn", rope_theta=1e6, factor=4.0, original_max_position_embeddings=64)

LLAMA3 = dict(rope_type="llama3", rope_theta=5e5, factor=32.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=64)
# Of the neighbours: heads that share hidden_size.
SHARED = {"head_dim": None}

# name: (differences from BASE, stored type, what is done to the folder afterwards); a name begins with its family's
VARIANTS = {
    "qwen3": ({}, torch.bfloat16, None),
    "qwen3-untied-f16": ({"tie_word_embeddings": False}, torch.float16, None),
    "qwen3-sharded-f32": ({}, torch.float32, "shards"),
    "qwen3-tied-with-head": ({}, torch.bfloat16, "another head"),
    "qwen3-old-config": ({}, torch.bfloat16, "old config"),
    "qwen3-yarn": ({"rope_theta": None, "rope_parameters": YARN, "max_position_embeddings": 256}, torch.bfloat16, None),
    "qwen3-mha": ({"num_key_value_heads": 4}, torch.bfloat16, None),
    # 15 heads over 5 as in models of 360 M parameters, widths that are no multiples of 8, an odd vocabulary
    "qwen3-15-heads": ({"vocab_size": 383, "hidden_size": 60, "intermediate_size": 100, "num_hidden_layers": 2, "num_attention_heads": 15,
                        "num_key_value_heads": 5, "head_dim": 20}, torch.bfloat16, None),
    "qwen2": (SHARED, torch.bfloat16, None),
    "qwen2-14-heads": ({**SHARED, "num_hidden_layers": 2, "hidden_size": 224, "num_attention_heads": 14}, torch.bfloat16, None),
    "llama3-rope": ({**SHARED, "rope_theta": None, "rope_parameters": LLAMA3, "tie_word_embeddings": False}, torch.bfloat16, None),
    "llama-9-heads": ({**SHARED, "num_hidden_layers": 2, "hidden_size": 288, "num_attention_heads": 9, "num_key_value_heads": 3, "rope_theta": 1e5},
                      torch.bfloat16, None),
    # Heads that do not share hidden_size, as Mistral Nemo's, and a window that just does not act.
    "mistral-15-heads": ({"hidden_size": 96, "num_hidden_layers": 2, "num_attention_heads": 15, "num_key_value_heads": 5, "head_dim": 16,
                          "tie_word_embeddings": False, "sliding_window": 256}, torch.bfloat16, None),
    "smollm3-nope": ({**SHARED, "num_hidden_layers": 4, "rope_theta": 2e6}, torch.bfloat16, None),
}
FAMILIES = {"qwen3": "Qwen3", "qwen2": "Qwen2", "llama": "Llama", "mistral": "Mistral", "smollm3": "SmolLM3"}
SEED_SHIFT = {"llama3-rope": 3}  # where the first seed gave a near tie in the greedy continuation


def randomize(model):
    """Weights large enough that every part moves the logits."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("bias"):
                parameter.copy_(0.3 * torch.randn_like(parameter))
            elif parameter.ndim == 1:
                parameter.copy_(1.0 + 0.2 * torch.randn_like(parameter))
            else:
                parameter.copy_(torch.randn_like(parameter) * (0.5 if "embed" in name else 1.5 / parameter.shape[-1] ** 0.5))


def add_another_head(folder):
    """A loader that uses this lm_head although the config ties it is wrong, and shows."""
    weights = load_file(f"{folder}/model.safetensors")
    weights["lm_head.weight"] = torch.randn_like(weights["model.embed_tokens.weight"])
    save_file(weights, f"{folder}/model.safetensors", metadata={"format": "pt"})


def make_config_old(folder):
    """The spelling of transformers 4: rope_theta at the top level, torch_dtype, rope_scaling null."""
    config = json.load(open(f"{folder}/config.json"))
    config["rope_theta"] = config.pop("rope_parameters")["rope_theta"]
    config["torch_dtype"] = config.pop("dtype")
    config["rope_scaling"] = None
    config.pop("layer_types", None)
    with open(f"{folder}/config.json", "w") as file:
        json.dump(config, file, indent=1)


def make(name, folder):
    differences, dtype, after = VARIANTS[name]
    torch.manual_seed(sum(map(ord, name)) + SEED_SHIFT.get(name, 0))
    family = next(FAMILIES[key] for key in FAMILIES if name.startswith(key))
    fields = {k: v for k, v in {**BASE, **differences}.items() if v is not None or k == "pad_token_id"}
    model = getattr(transformers, family + "ForCausalLM")(getattr(transformers, family + "Config")(**fields))
    randomize(model)
    os.makedirs(folder, exist_ok=True)
    model.to(dtype).save_pretrained(folder, **({"max_shard_size": "150KB"} if after == "shards" else {}))
    if after == "another head":
        add_another_head(folder)
    if after == "old config":
        make_config_old(folder)
    print(name, sum(p.numel() for p in model.parameters()), sorted(os.listdir(folder)))


for variant in sys.argv[2:] or VARIANTS:
    make(variant, f"{sys.argv[1]}/{variant}")
