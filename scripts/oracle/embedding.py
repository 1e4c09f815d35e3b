"""Embeddings and ranking scores, computed by Hugging Face transformers in float32 on the CPU as the model cards of Qwen3-Embedding and
Qwen3-Reranker do it.

    embedding.py DEMO_DIR SMALL_DIR GOLDEN.json

Reads the cases of GOLDEN.json and computes them anew. No model here was trained for this, which the arithmetic does not notice. The demo model's
tokenizer gets what is said in "changes", such as a post-processor that ends each text with <|endoftext|>, and a token 'yes' in a row of its
embedding that no token uses (control tokens stand in the vocabulary too, or tokenizers would number them anew). "texts" and "rankings" are for it, "ids" for SMALL_DIR, which has no tokenizer. Embeddings are base64 of float32.
"""
import base64
import json
import sys

import torch
import transformers
from tokenizers import Tokenizer
from torch.nn.functional import log_softmax, normalize
from transformers import AutoModel, AutoModelForCausalLM

TASK = "Given a web search query, retrieve relevant passages that answer the query"
SYSTEM = ('Judge whether the Document meets the requirements based on the Query and the Instruct provided. '
          'Note that the answer can only be "yes" or "no".')
BEFORE = f"<|im_start|>system\n{SYSTEM}<|im_end|>\n<|im_start|>user\n"
AFTER = "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"


def tokenizers(folder, changes):
    """The changed tokenizer, and one for text in which nothing is a control token."""
    data = json.load(open(f"{folder}/tokenizer.json"))
    data["model"]["vocab"].update(changes["vocab"])
    data["model"]["merges"] += changes["merges"]
    data["post_processor"] = changes["post_processor"]
    return Tokenizer.from_str(json.dumps(data)), Tokenizer.from_str(json.dumps({**data, "added_tokens": [], "post_processor": None}))


def embedding(model, ids):
    hidden = model(torch.tensor([ids])).last_hidden_state[:, -1]
    return base64.b64encode(normalize(hidden, p=2, dim=1)[0].numpy().tobytes()).decode()


def score(model, ids, yes, no):
    logits = model(torch.tensor([ids])).logits[0, -1]
    return log_softmax(torch.stack([logits[no], logits[yes]]), dim=0)[1].exp().item()


def text_cases(cases, folder, special, plain):
    model = AutoModel.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
    [end] = special.encode("").ids
    for case in cases:
        task = case.get("instruction")
        ids = plain.encode(f"Instruct: {task}\nQuery:{case['text']}" if task else case["text"]).ids + [end]
        yield {**case, "ids": ids, "embedding": embedding(model, ids)}


def ranking_cases(cases, folder, special, plain):
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
    before, after = (special.encode(part, add_special_tokens=False).ids for part in (BEFORE, AFTER))
    yes, no = special.token_to_id("yes"), special.token_to_id("no")
    for case in cases:
        pair = f"<Instruct>: {case.get('instruction', TASK)}\n<Query>: {case['query']}\n<Document>: "
        scores = [score(model, before + plain.encode(pair + document).ids + after, yes, no) for document in case["documents"]]
        yield {**case, "scores": scores}


def main(demo, small, out):
    torch.set_grad_enabled(False)
    golden = json.load(open(out))
    special, plain = tokenizers(demo, golden["changes"])
    random = AutoModel.from_pretrained(small, dtype=torch.float32, attn_implementation="eager").eval()
    golden["oracle"] = {"transformers": transformers.__version__, "torch": torch.__version__.split("+")[0], "dtype": "float32"}
    golden["texts"] = list(text_cases(golden["texts"], demo, special, plain))
    golden["ids"] = [{"ids": case["ids"], "embedding": embedding(random, case["ids"])} for case in golden["ids"]]
    golden["rankings"] = list(ranking_cases(golden["rankings"], demo, special, plain))
    with open(out, "w") as file:
        json.dump(golden, file, ensure_ascii=False, indent=1)
        file.write("\n")
    for case in golden["rankings"]:
        print(case["query"], [round(s, 5) for s in case["scores"]])


if __name__ == "__main__":
    main(*sys.argv[1:])
