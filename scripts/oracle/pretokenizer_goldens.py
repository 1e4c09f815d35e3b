"""Where pre-tokenizers cut texts, by Hugging Face tokenizers.

    pretokenizer_goldens.py GOLDEN.json [SEED COUNT]

Computes the pieces of the stored texts anew, for each kind as the lengths in characters. SEED and COUNT append that many random texts.
"""
import json
import sys

import tokenizers
from tokenizers import Regex
from tokenizers.pre_tokenizers import ByteLevel, Digits, Sequence, Split
from tokenizer_goldens import random_strings

WORDS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|NUMBER| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)"


def split(*patterns):
    return Sequence([*(Split(Regex(pattern), "isolated") for pattern in patterns)])


KINDS = {
    "qwen2": split(WORDS.replace("NUMBER", r"\p{N}")),
    "llama-bpe": split(WORDS.replace("NUMBER", r"\p{N}{1,3}")),
    "gpt-2": ByteLevel(add_prefix_space=False, use_regex=True),
    "smollm": Sequence([Digits(individual_digits=True), ByteLevel(add_prefix_space=False, use_regex=True)]),
    # The four expressions that llama.cpp applies one after the other.
    "default": split(r"[\p{P}\$\+<=>\^~\|]+", GPT2, r"\p{N}+", r"[0-9][0-9][0-9]"),
}


def main(path, seed=0, count=0):
    texts = json.load(open(path))["texts"] + random_strings(int(seed), int(count))
    pieces = {name: [[end - begin for _, (begin, end) in kind.pre_tokenize_str(text)] for text in texts] for name, kind in KINDS.items()}
    with open(path, "w") as file:
        json.dump({"oracle": {"tokenizers": tokenizers.__version__}, "texts": texts, "pieces": pieces}, file, separators=(",", ":"))
        file.write("\n")
    print(path, len(texts), "texts", {name: sum(map(len, cut)) for name, cut in pieces.items()})


main(*sys.argv[1:])
