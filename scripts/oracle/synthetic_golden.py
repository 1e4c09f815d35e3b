"""Greedy tokens and some logits of the full-size random-weight model that scripts/synthetic-qwen3.mjs writes (needs 4 GB of memory).

    synthetic_golden.py MODEL_DIR OUT.json
"""
import json
import sys

import torch
import transformers

from golden import continue_greedily, load_model

PROMPT = [785, 6722, 315, 9625, 374]  # "The capital of France is"
TOKENS = 16
SAMPLED = list(range(0, 151936, 2339))  # ids whose logits are stored: 65, spread over the vocabulary


def main(folder, out):
    torch.set_grad_enabled(False)
    model = load_model(folder)
    logits = model(torch.tensor([PROMPT])).logits[0]
    greedy, margin = continue_greedily(model, PROMPT, TOKENS, set())
    with open(out, "w") as file:
        json.dump({
            "oracle": {"transformers": transformers.__version__, "torch": torch.__version__.split("+")[0], "dtype": "float32"},
            "ids": PROMPT, "greedy": greedy, "smallest_margin": margin, "sampled": SAMPLED,
            "logits": [[round(value.item(), 6) for value in row[SAMPLED]] for row in logits],
        }, file)
        file.write("\n")
    print(out, greedy, "smallest margin", margin)


main(*sys.argv[1:])
