"""Ids by tokenizers as other families have them: models/demo/tokenizer.json with their pre-tokenizer, post-processor and options.

    family_goldens.py DEMO_TOKENIZER_JSON GOLDEN.json

Computes the stored texts anew for each stored family: {"changes" (a JSON merge patch), "drop_merges" (0, or n: each n-th merge is left out)}.
"ids" are those of the text alone, "begin" and "end" what stands around it with add_special_tokens.
"""
import json
import sys

import tokenizers
from tokenizers import Tokenizer


def patched(value, changes):
    if not isinstance(changes, dict):
        return changes
    out = dict(value) if isinstance(value, dict) else {}
    for key, change in changes.items():
        out[key] = patched(out.get(key), change)
        if change is None:
            del out[key]
    return out


def family_tokenizer(demo, family):
    data = patched(demo, family["changes"])
    if family["drop_merges"]:
        data["model"]["merges"] = [merge for i, merge in enumerate(data["model"]["merges"]) if (i + 1) % family["drop_merges"]]
    return Tokenizer.from_str(json.dumps(data))


def main(demo_path, path):
    demo = json.load(open(demo_path))
    golden = json.load(open(path))
    for family in golden["families"]:
        tokenizer = family_tokenizer(demo, family)
        around = tokenizer.encode("", add_special_tokens=True).ids
        text = [tokenizer.encode(text, add_special_tokens=False).ids for text in golden["texts"]]
        family["begin"] = around if family["name"] != "embedding" else []
        family["end"] = around[len(family["begin"]):]
        for ids, whole in zip(text, golden["texts"]):
            assert tokenizer.encode(whole, add_special_tokens=True).ids == family["begin"] + ids + family["end"]
        family["ids"] = text
    golden = {"oracle": {"tokenizers": tokenizers.__version__}, "texts": golden["texts"], "families": golden["families"]}
    with open(path, "w") as file:
        json.dump(golden, file, separators=(",", ":"))
        file.write("\n")
    print(path, len(golden["texts"]), "texts", {family["name"]: sum(map(len, family["ids"])) for family in golden["families"]})


main(*sys.argv[1:])
