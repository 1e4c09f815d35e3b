"""Token ids and both decodings of the strings in a golden file, by Hugging Face tokenizers.

    tokenizer_goldens.py TOKENIZER_JSON GOLDEN.json [SEED COUNT]

Computes the stored cases ({"text"}) anew. SEED and COUNT append that many random strings over scripts, digits, spaces and marks.
"""
import json
import random
import sys

import tokenizers
from tokenizers import Tokenizer

POOLS = [
    "abcdefghijklmnopqrstuvwxyz", "ABCXYZ", "0123456789", "     ", "\n\r\t\u00a0\u3000\u2028\u0085\u200b\ufeff",
    ".,;:!?-_=+*/\\|()[]{}<>@#$%^&~`'\"", "\u0301\u0323\u0302\u093f\u0e34\u200d\ufe0f", "éèüñßçåøπλдж", "中文字符你好世界",
    "ひらがなカタカナ한국어", "\u1112\u1161\u11ab\u1100", "😀🎉👩‍👩‍👧‍👦🏳️‍🌈🫠🚀", "٠١٢३४५Ⅷ½²", "العربيةעברית", "𝔘𝕟𝕚𝒸𝓸𝖉𝗲𐍈",
    "\ud7ff\ue000\ufffd\u0000\u0001\u001b", "'s't're've'm'll'd'S'T'ſ",
]


def random_piece(r):
    if r.random() < 0.5:
        return "".join(r.choice(r.choice(POOLS)) for _ in range(r.randrange(1, 4)))
    return "".join(r.choice(POOLS[0]) for _ in range(r.randrange(1, 8))) + r.choice(["", " ", "  ", "\n"])


def random_strings(seed, count):
    r = random.Random(seed)
    return ["".join(random_piece(r) for _ in range(r.randrange(1, 14))) for _ in range(count)]


def main(tokenizer_path, golden_path, seed=0, count=0):
    tokenizer = Tokenizer.from_file(tokenizer_path)
    texts = [case["text"] for case in json.load(open(golden_path))["cases"]] + random_strings(int(seed), int(count))
    cases = []
    for text in texts:
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        cases.append({"text": text, "ids": ids, "decoded": tokenizer.decode(ids, skip_special_tokens=False),
                      "decoded_skip_special": tokenizer.decode(ids, skip_special_tokens=True)})
    with open(golden_path, "w") as file:
        json.dump({"oracle": {"tokenizers": tokenizers.__version__}, "cases": cases}, file, ensure_ascii=True, indent=0)
    print(golden_path, len(cases), "strings", sum(len(case["ids"]) for case in cases), "ids")


if __name__ == "__main__":
    main(*sys.argv[1:])
