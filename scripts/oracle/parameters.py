"""Parameter counts of published configurations, by transformers models on the meta device (no weights).

    parameters.py CONFIGS_DIR OUT.json

CONFIGS_DIR/<name>/config.json → for each name the total (a tied head counted once, as num_parameters() does), the parts, which add up to
the total, and how many parameters one token uses: all of a dense model, and of a mixture only the experts that the router picks.
"""
import json
import os
import sys

import torch
import transformers
from transformers import AutoConfig, AutoModelForCausalLM


def part_of(name):
    for part, marks in {"embedding": ["embed_tokens"], "lm_head": ["lm_head"], "norms": ["norm"], "router": ["mlp.gate.weight"],
                        "attention": ["self_attn"], "experts": ["mlp.experts"], "mlp": ["mlp"]}.items():
        if any(mark in name for mark in marks):
            return part
    raise ValueError(f"{name} belongs to no part")


def count(folder):
    config = AutoConfig.from_pretrained(folder)
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config)
    model.tie_weights()
    parts = dict.fromkeys(["embedding", "attention", "mlp", "experts", "router", "norms", "lm_head"], 0)
    for name, parameter in model.named_parameters():
        parts[part_of(name)] += parameter.numel()
    total = model.num_parameters()
    assert total == sum(parts.values()), (total, parts)
    idle = 0
    if getattr(config, "num_experts", 0):
        idle = parts["experts"] // config.num_experts * (config.num_experts - config.num_experts_per_tok)
    return {"total": total, "active": total - idle, "parts": parts}


def main(configs, out):
    models = {name: count(f"{configs}/{name}") for name in sorted(os.listdir(configs))}
    oracle = {"transformers": transformers.__version__, "torch": torch.__version__.split("+")[0]}
    with open(out, "w") as file:
        json.dump({"oracle": oracle, "models": models}, file, indent=1)
        file.write("\n")
    for name, counts in models.items():
        print(name, counts["total"], counts["active"])


main(*sys.argv[1:])
