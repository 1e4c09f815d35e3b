"""Completes the trained folder to a Hugging Face repository: generation defaults, chat template, vocab.json, merges.txt.

    finish_demo.py MODEL_DIR
"""
import json
import os
import sys

TOKEN_FIELDS = ("content", "lstrip", "normalized", "rstrip", "single_word", "special")


def write_json(path, value, indent=2):
    with open(path, "w") as file:
        json.dump(value, file, ensure_ascii=False, indent=indent)


def main(folder):
    tokenizer = json.load(open(f"{folder}/tokenizer.json"))
    added = tokenizer["added_tokens"]
    ids = {token["content"]: token["id"] for token in added}
    template = open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "chat_template.jinja")).read()
    write_json(f"{folder}/generation_config.json", {
        "bos_token_id": ids["<|endoftext|>"], "do_sample": True, "eos_token_id": [ids["<|im_end|>"], ids["<|endoftext|>"]],
        "pad_token_id": ids["<|endoftext|>"], "temperature": 0.6, "top_k": 20, "top_p": 0.95,
    })
    write_json(f"{folder}/tokenizer_config.json", {
        "add_bos_token": False, "add_prefix_space": False,
        "added_tokens_decoder": {str(token["id"]): {key: token[key] for key in TOKEN_FIELDS} for token in added},
        "additional_special_tokens": ["<|im_start|>", "<|im_end|>"], "bos_token": None, "chat_template": template,
        "clean_up_tokenization_spaces": False, "eos_token": "<|im_end|>", "errors": "replace", "model_max_length": 2048,
        "pad_token": "<|endoftext|>", "split_special_tokens": False, "tokenizer_class": "Qwen2Tokenizer", "unk_token": None,
    })
    write_json(f"{folder}/vocab.json", tokenizer["model"]["vocab"], indent=None)
    with open(f"{folder}/merges.txt", "w") as file:
        file.write("#version: 0.2\n")
        for merge in tokenizer["model"]["merges"]:
            file.write((merge if isinstance(merge, str) else " ".join(merge)) + "\n")


main(*sys.argv[1:])
