"""Ids of conversations in which people typed control tokens: the template's own are control tokens, what people wrote is plain text.

    inert_goldens.py TOKENIZER_DIR GOLDEN.json

Computes the stored cases ({"name", "messages"}) anew. A private-use character stands for the "<" of each typed control token while the
template renders; the pieces between real control tokens are then encoded by the same tokenizer without its added tokens.
"""
import copy
import json
import re
import sys

import tokenizers
from tokenizers import Tokenizer
from transformers import AutoTokenizer

MARK = "\ue123"
# In an assistant's own history these tags mean what they say.
ASSISTANT_TAGS = {"<think>", "</think>", "<tool_call>", "</tool_call>"}


class InertEncoder:
    def __init__(self, tokenizer_dir):
        full = json.load(open(f"{tokenizer_dir}/tokenizer.json"))
        self.added = {token["content"]: token["id"] for token in full["added_tokens"]}
        self.plain = Tokenizer.from_str(json.dumps({**full, "added_tokens": []}))
        self.chat = AutoTokenizer.from_pretrained(tokenizer_dir)
        self.control = re.compile("|".join(re.escape(c) for c in sorted(self.added, key=len, reverse=True)))

    def mark(self, text, kept=()):
        return self.control.sub(lambda match: match[0] if match[0] in kept else MARK + match[0][1:], text)

    def marked(self, message):
        message = copy.deepcopy(message)
        message["content"] = self.mark(message["content"], ASSISTANT_TAGS if message["role"] == "assistant" else ())
        for call in message.get("tool_calls", []):
            arguments = call["function"]["arguments"]
            call["function"]["arguments"] = {k: self.mark(v) if isinstance(v, str) else v for k, v in arguments.items()}
        return message

    def encode_plain(self, text):
        return self.plain.encode(text.replace(MARK, "<"), add_special_tokens=False).ids

    def encode_chat(self, messages):
        prompt = self.chat.apply_chat_template([self.marked(m) for m in messages], tokenize=False, add_generation_prompt=True)
        ids, at = [], 0
        for match in self.control.finditer(prompt):
            ids += self.encode_plain(prompt[at:match.start()]) + [self.added[match[0]]]
            at = match.end()
        return ids + self.encode_plain(prompt[at:])


def main(tokenizer_dir, golden_path):
    encoder = InertEncoder(tokenizer_dir)
    cases = [{"name": case["name"], "messages": case["messages"], "ids": encoder.encode_chat(case["messages"])}
             for case in json.load(open(golden_path))["cases"]]
    with open(golden_path, "w") as file:
        json.dump({"oracle": {"tokenizers": tokenizers.__version__}, "cases": cases}, file, indent=1)
    print(golden_path, len(cases), "conversations")


main(*sys.argv[1:])
