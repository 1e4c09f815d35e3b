"""Rendered chat prompts and their ids, by Hugging Face transformers' apply_chat_template.

    template_goldens.py TOKENIZER_DIR GOLDEN.json

Computes the stored cases ({"name", "messages", optional "tools" and "options"}) anew.
"""
import json
import sys

import transformers
from transformers import AutoTokenizer


def main(tokenizer_dir, golden_path):
    tokenizer = AutoTokenizer.from_pretrained(tokenizer_dir)
    cases = []
    for case in json.load(open(golden_path))["cases"]:
        options = {"add_generation_prompt": True, **case.get("options", {})}
        prompt = tokenizer.apply_chat_template(case["messages"], tools=case.get("tools"), tokenize=False, **options)
        given = {key: case[key] for key in ("name", "messages", "tools", "options") if key in case}
        cases.append({**given, "prompt": prompt, "ids": tokenizer(prompt, add_special_tokens=False)["input_ids"]})
    with open(golden_path, "w") as file:
        json.dump({"oracle": {"transformers": transformers.__version__}, "cases": cases}, file, ensure_ascii=True, indent=1)
    print(golden_path, len(cases), "prompts")


main(*sys.argv[1:])
