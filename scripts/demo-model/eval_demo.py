"""Share of right answers on fresh questions of each skill, greedy, with and without thinking.

    eval_demo.py MODEL_DIR COUNT [print-mistakes]
"""
import random
import sys

import torch
from tokenizers import Tokenizer
from transformers import AutoModelForCausalLM

import make_corpus


class Demo:
    def __init__(self, folder):
        self.model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
        self.tokenizer = Tokenizer.from_file(f"{folder}/tokenizer.json")
        self.end = self.tokenizer.token_to_id("<|im_end|>")

    def answer(self, question, think):
        prompt = f"<|im_start|>user\n{question}<|im_end|>\n<|im_start|>assistant\n" + ("" if think else "<think>\n\n</think>\n\n")
        ids = self.tokenizer.encode(prompt, add_special_tokens=False).ids
        with torch.no_grad():
            out = self.model.generate(torch.tensor([ids]), max_new_tokens=220, do_sample=False, eos_token_id=self.end, pad_token_id=self.end)
        return self.tokenizer.decode(out[0][len(ids):].tolist(), skip_special_tokens=False)


def main(folder, count, print_mistakes=None):
    demo, r = Demo(folder), random.Random(99)
    for skill in (make_corpus.arithmetic, make_corpus.words, make_corpus.facts):
        for think in (True, False):
            right = 0
            for _ in range(int(count)):
                question, _, expected = skill(r)
                text = demo.answer(question, think)
                answer = text.split("</think>")[-1].replace("<|im_end|>", "").strip()
                right += answer == expected
                if answer != expected and print_mistakes:
                    print(repr(question), "|", repr(expected), "|", repr(text[-80:]))
            print(f"{skill.__name__} {'with' if think else 'without'} thinking: {right} of {count}")
    print(demo.answer("Tell me a story about a fox named Mia.", think=True))
    print(demo.answer("你好", think=False))


main(*sys.argv[1:])
