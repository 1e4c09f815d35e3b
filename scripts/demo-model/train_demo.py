"""Trains the demo model on the synthetic corpus and saves it as a Hugging Face repository folder.

    train_demo.py CORPUS.jsonl OUT_DIR MINUTES QWEN3_TOKENIZER_DIR     (55 minutes on two cores gave the model that is shipped)
"""
import itertools
import json
import math
import os
import re
import sys
import time

import numpy as np
import torch
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import Qwen3Config, Qwen3ForCausalLM

SPECIALS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
TAGS = ["<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>", "<think>", "</think>"]
VOCAB = 2048
SPARE_IDS = 23      # ids at the end without a token: a loader must bear them, as in Qwen3's own vocabulary
ROW = 256           # tokens of a training row
BATCH = 24          # rows
PEAK_RATE = 1.5e-3
NOT_TRAINED = -100  # label of a token that the loss leaves out


def make_tokenizer(conversations, pattern):
    """Byte-level BPE with Qwen3's pre-tokenizer and control tokens, learnt from the first 40,000 conversations."""
    tokenizer = Tokenizer(models.BPE(unk_token=None, byte_fallback=False, fuse_unk=False))
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(pattern), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel(add_prefix_space=False, trim_offsets=False, use_regex=False)
    trainer = trainers.BpeTrainer(vocab_size=VOCAB - len(SPECIALS) - len(TAGS) - SPARE_IDS, show_progress=False,
                                  initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()))
    control = re.compile("|".join(re.escape(token) for token in SPECIALS + TAGS))
    segments = (text for conversation in itertools.islice(conversations, 40000) for text, _ in conversation)
    tokenizer.train_from_iterator((piece for text in segments for piece in control.split(text) if piece), trainer)
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in SPECIALS])
    tokenizer.add_tokens([AddedToken(token, special=False, normalized=False) for token in TAGS])
    return tokenizer


def encode(conversations, tokenizer):
    """One long row of ids, and their labels."""
    ids, labels = [], []
    for at in range(0, len(conversations), 5000):
        segments = [segment for conversation in conversations[at:at + 5000] for segment in conversation]
        encoded = tokenizer.encode_batch([text for text, _ in segments], add_special_tokens=False)
        for (_, learnt), piece in zip(segments, encoded):
            ids += piece.ids
            labels += piece.ids if learnt else [NOT_TRAINED] * len(piece.ids)
    return np.array(ids, np.int32), np.array(labels, np.int32)


def make_model(tokenizer):
    model = Qwen3ForCausalLM(Qwen3Config(
        vocab_size=VOCAB, hidden_size=256, intermediate_size=512, num_hidden_layers=4, num_attention_heads=6, num_key_value_heads=2, head_dim=64,
        max_position_embeddings=2048, rope_theta=1000000.0, rms_norm_eps=1e-6, tie_word_embeddings=True, attn_implementation="sdpa",
        bos_token_id=tokenizer.token_to_id("<|endoftext|>"), eos_token_id=tokenizer.token_to_id("<|im_end|>")))
    print("parameters", sum(p.numel() for p in model.parameters()))
    return model


def make_optimizer(model):
    matrices = [p for p in model.parameters() if p.ndim > 1]
    vectors = [p for p in model.parameters() if p.ndim <= 1]
    groups = [{"params": matrices, "weight_decay": 0.05}, {"params": vectors, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=PEAK_RATE, betas=(0.9, 0.98), fused=True)


def loss_of(model, ids, labels, starts):
    x = torch.from_numpy(np.stack([ids[s:s + ROW] for s in starts])).long()
    y = torch.from_numpy(np.stack([labels[s + 1:s + ROW + 1] for s in starts])).long().reshape(-1)
    hidden = model.model(input_ids=x).last_hidden_state
    trained = y >= 0  # the head runs only where the loss looks
    return torch.nn.functional.cross_entropy(model.lm_head(hidden.reshape(-1, hidden.shape[-1])[trained]), y[trained])


def train(model, ids, labels, seconds, out):
    optimizer = make_optimizer(model)
    rows = len(ids) // ROW - 1
    order = np.random.default_rng(0).permutation(rows)
    started, step, average = time.time(), 0, None
    while (elapsed := time.time() - started) < seconds:
        cosine = 0.5 * (1 + math.cos(math.pi * elapsed / seconds))
        rate = PEAK_RATE * min(1, (step + 1) / 100) * (cosine * 0.98 + 0.02)
        for group in optimizer.param_groups:
            group["lr"] = rate
        loss = loss_of(model, ids, labels, [order[(step * BATCH + i) % rows] * ROW for i in range(BATCH)])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        step += 1
        average = loss.item() if average is None else 0.98 * average + 0.02 * loss.item()
        if step % 50 == 0:
            print(f"step {step}, {elapsed:.0f} s, loss {average:.4f}, rate {rate:.2e}", flush=True)
        if step % 400 == 0:
            model.save_pretrained(out)


def main(corpus, out, minutes, tokenizer_dir):
    torch.manual_seed(0)
    with open(corpus) as file:
        conversations = [json.loads(line) for line in file]
    qwen3 = json.load(open(f"{tokenizer_dir}/tokenizer.json"))
    tokenizer = make_tokenizer(conversations, qwen3["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"])
    os.makedirs(out, exist_ok=True)
    tokenizer.save(f"{out}/tokenizer.json")
    ids, labels = encode(conversations, tokenizer)
    print("tokens", len(ids), "of which trained", (labels >= 0).sum())
    model = make_model(tokenizer)
    train(model, ids, labels, float(minutes) * 60, out)
    model.to(torch.bfloat16).save_pretrained(out)


main(*sys.argv[1:])
