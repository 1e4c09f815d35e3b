"""Distributions of the next token, by the processors that Hugging Face transformers' generate() chooses, in its order.

    sampling_goldens.py GOLDEN.json

Computes the stored cases ({"name", "logits", "sequence", "options"}; of sequence_bias: {"id": bias}) anew.
"""
import json
import sys

import torch
import transformers
from transformers import GenerationConfig, Qwen3Config, Qwen3ForCausalLM


def main(golden_path):
    # generate() is a method of models; none of this one's weights is used.
    model = Qwen3ForCausalLM(Qwen3Config(vocab_size=8, hidden_size=8, intermediate_size=8, num_hidden_layers=1, head_dim=8))
    cases = []
    for case in json.load(open(golden_path))["cases"]:
        options = dict(case["options"])
        if "sequence_bias" in options:
            options["sequence_bias"] = [[[int(id)], float(bias)] for id, bias in options["sequence_bias"].items()]
        config = GenerationConfig(do_sample=True, **{"top_k": 0, **options})
        processors = model._get_logits_processor(config, input_ids_seq_length=len(case["sequence"]), model_kwargs={})
        scores = processors(torch.tensor([case["sequence"]], dtype=torch.long), torch.tensor([case["logits"]]))
        probabilities = scores.softmax(dim=-1)[0].tolist()
        kept = {str(id): round(p, 6) for id, p in enumerate(probabilities) if p > 0}
        cases.append({**{key: case[key] for key in ("name", "logits", "sequence", "options")}, "probabilities": kept})
    with open(golden_path, "w") as file:
        json.dump({"oracle": {"transformers": transformers.__version__}, "cases": cases}, file, indent=1)
    print(golden_path, len(cases), "distributions")


main(*sys.argv[1:])
