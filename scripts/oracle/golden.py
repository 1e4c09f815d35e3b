"""Golden values of a model folder, computed by Hugging Face transformers in float32 on the CPU.

    golden.py MODEL_DIR GOLDEN_DIR

Reads the cases of GOLDEN_DIR/golden.json ({"name", "ids" or "text", optional "keep" and "greedy"}), computes them anew and writes
  golden.json         ids, greedy continuation (an end token included), smallest argmax margin, versions
  golden.safetensors  for each case "<name>.logits" (T, V) and "<name>.hidden" (L+1, T, H): the embedding output and the output of each
                      layer (the last one after the final norm); with "keep": N only the last N positions
The continuation is as long as the stored one, 48 tokens for a new case. To add a case, add its name and text to the file and run.
"""
import json
import os
import sys

import torch
import transformers
from safetensors.torch import save_file
from tokenizers import Tokenizer
from transformers import AutoModelForCausalLM

NEW_CASE_TOKENS = 48


def load_model(folder):
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
    if model.config.tie_word_embeddings:
        # The config decides, also where the file holds another lm_head (transformers 5 would use that one).
        model.lm_head.weight = model.get_input_embeddings().weight
    return model


def end_tokens(folder, model):
    path = f"{folder}/generation_config.json"
    generation = json.load(open(path)) if os.path.exists(path) else {}
    eos = generation.get("eos_token_id", model.config.eos_token_id)
    return set(eos if isinstance(eos, list) else [eos])


def continue_greedily(model, ids, count, eos):
    """Without a KV cache, so that every token is a whole forward pass. Returns the tokens and the smallest margin of an argmax."""
    sequence, greedy, margins = list(ids), [], []
    while len(greedy) < count and not (greedy and greedy[-1] in eos):
        top = model(torch.tensor([sequence])).logits[0, -1].topk(2)
        greedy.append(top.indices[0].item())
        sequence.append(greedy[-1])
        margins.append(round((top.values[0] - top.values[1]).item(), 5))
    return greedy, min(margins)


def compute(case, model, tokenizer, eos):
    ids = case["ids"] if "ids" in case else tokenizer.encode(case["text"], add_special_tokens=False).ids
    result = model(torch.tensor([ids]), output_hidden_states=True)
    keep = case.get("keep", len(ids))
    tensors = {
        case["name"] + ".logits": result.logits[0, -keep:].contiguous(),
        case["name"] + ".hidden": torch.stack([h[0, -keep:] for h in result.hidden_states]).contiguous(),
    }
    greedy, margin = continue_greedily(model, ids, len(case.get("greedy", [])) or NEW_CASE_TOKENS, eos)
    entry = {"name": case["name"], "ids": ids, "greedy": greedy, "smallest_margin": margin}
    entry.update({key: case[key] for key in ("text", "keep") if key in case})
    if tokenizer:
        entry["greedy_text"] = tokenizer.decode(greedy, skip_special_tokens=False)
    return entry, tensors


def main(folder, out):
    torch.set_grad_enabled(False)
    model = load_model(folder)
    has_tokenizer = os.path.exists(f"{folder}/tokenizer.json")
    tokenizer = Tokenizer.from_file(f"{folder}/tokenizer.json") if has_tokenizer else None
    eos = end_tokens(folder, model)
    entries, tensors = [], {}
    for case in json.load(open(f"{out}/golden.json"))["cases"]:
        entry, own = compute(case, model, tokenizer, eos)
        entries.append(entry)
        tensors.update(own)
    save_file(tensors, f"{out}/golden.safetensors")
    oracle = {"transformers": transformers.__version__, "torch": torch.__version__.split("+")[0], "dtype": "float32"}
    with open(f"{out}/golden.json", "w") as file:
        json.dump({"oracle": oracle, "eos": sorted(eos), "cases": entries}, file, ensure_ascii=False, indent=1)
    print(out, len(entries), "cases", sum(t.numel() * 4 for t in tensors.values()) // 1024, "KiB")


if __name__ == "__main__":
    main(*sys.argv[1:])
