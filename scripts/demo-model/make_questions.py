"""Writes fresh questions of each skill that has one right answer, for measuring how much of a skill is left.

    make_questions.py COUNT SEED OUT.json     OUT.json: {skill: [[question, answer], ...], ...}, COUNT of each skill
"""

import json
import random
import sys

from make_corpus import arithmetic, facts, words

count, seed, out = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
r = random.Random(seed)
questions = {}
for skill in (arithmetic, words, facts):
    samples = [skill(r) for _ in range(count)]
    questions[skill.__name__] = [[question, answer] for question, _, answer in samples]
with open(out, "w") as file:
    json.dump(questions, file, ensure_ascii=False)
