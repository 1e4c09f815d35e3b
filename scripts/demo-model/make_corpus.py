"""Writes the synthetic corpus that the demo model learns: small, checkable skills in Qwen3's chat format.

    make_corpus.py COUNT SEED OUT.jsonl     each line: one conversation as [[text, 1 where the model learns it, else 0], ...]
"""

import json
import random
import sys

from vocabulary import (
    NAMES, ANIMALS, ADJ, PLACES, THINGS, FRUITS, COLORS, WORDS, CAPITALS, CAPITALS_ZH, SOUNDS, DAYS, MONTHS, CITIES,
)


def add_steps(a, b):
    out, carry, i = [], 0, 0
    x, y = str(a)[::-1], str(b)[::-1]
    while i < max(len(x), len(y)):
        p, q = int(x[i]) if i < len(x) else 0, int(y[i]) if i < len(y) else 0
        s = p + q + carry
        out.append(f"{p} + {q} + {carry} = {s}, write {s % 10}, carry {s // 10}.")
        carry, i = s // 10, i + 1
    out.append(f"Carry {carry}. So {a} + {b} = {a + b}.")
    return "\n".join(out)


def sub_steps(a, b):
    out, borrow = [], 0
    x, y = str(a)[::-1], str(b)[::-1]
    for i in range(len(x)):
        p, q = int(x[i]), int(y[i]) if i < len(y) else 0
        d = p - q - borrow
        if d < 0:
            out.append(f"{p} - {q} - {borrow} is below 0, borrow: {d + 10}, borrow 1.")
            borrow, d = 1, d + 10
        else:
            out.append(f"{p} - {q} - {borrow} = {d}, borrow 0.")
            borrow = 0
    out.append(f"So {a} - {b} = {a - b}.")
    return "\n".join(out)


def num(r):
    return r.randrange(10 ** r.choice([1, 2, 2, 3, 3]))


def arithmetic(r):
    k = r.random()
    if k < 0.55:
        a, b = num(r), num(r)
        q = r.choice(
            [
                f"What is {a} + {b}?",
                f"{a} + {b} = ?",
                f"Add {a} and {b}.",
                f"Please compute {a} plus {b}.",
                f"{a}加{b}等于多少？",
            ]
        )
        return q, add_steps(a, b), (f"{a} + {b} = {a + b}")
    if k < 0.85:
        a, b = num(r), num(r)
        a, b = max(a, b), min(a, b)
        q = r.choice(
            [
                f"What is {a} - {b}?",
                f"{a} - {b} = ?",
                f"Subtract {b} from {a}.",
                f"Please compute {a} minus {b}.",
                f"{a}减{b}等于多少？",
            ]
        )
        return q, sub_steps(a, b), f"{a} - {b} = {a - b}"
    a, b = r.randrange(13), r.randrange(13)
    q = r.choice([f"What is {a} * {b}?", f"{a} times {b}?", f"Multiply {a} by {b}."])
    return q, f"From the times table, {a} * {b} = {a * b}.", f"{a} * {b} = {a * b}"


def words(r):
    w = r.choice(WORDS)
    k = r.randrange(7)
    sp = " ".join(w)
    if k == 0:
        return f"Spell the word {w}.", f"The letters of {w} are {sp}.", "-".join(w)
    if k == 1:
        return (
            r.choice([f"Reverse the word {w}.", f"Write {w} backwards."]),
            f"The letters of {w} are {sp}. Backwards: {' '.join(w[::-1])}.",
            w[::-1],
        )
    if k == 2:
        return (
            r.choice([f"How many letters are in {w}?", f"Count the letters in {w}."]),
            "\n".join(f"{i + 1} {c}" for i, c in enumerate(w)),
            f"{w} has {len(w)} letters.",
        )
    if k == 3:
        return f"What is the first letter of {w}?", f"The letters of {w} are {sp}.", w[0]
    if k == 4:
        return f"What is the last letter of {w}?", f"The letters of {w} are {sp}.", w[-1]
    if k == 5:
        return (
            r.choice([f"Write {w} in capitals.", f"Make {w} uppercase."]),
            f"The letters of {w} are {sp}. In capitals: {sp.upper()}.",
            w.upper(),
        )
    n = r.choice([2, 3, 4])
    ns = [r.randrange(100) for _ in range(n)]
    return (
        f"Sort the numbers {', '.join(map(str, ns))}.",
        f"From small to large: {', '.join(map(str, sorted(ns)))}.",
        ", ".join(map(str, sorted(ns))),
    )


def facts(r):
    k = r.randrange(9)
    if k == 0:
        c = r.choice(list(CAPITALS))
        return (
            r.choice([f"What is the capital of {c}?", f"Tell me the capital of {c}.", f"The capital of {c} is?"]),
            f"The question is about {c}. Its capital is {CAPITALS[c]}.",
            f"The capital of {c} is {CAPITALS[c]}.",
        )
    if k == 1:
        a = r.choice(list(SOUNDS))
        return (
            r.choice([f"What does a {a} say?", f"What sound does a {a} make?"]),
            f"The animal is a {a}. It says {SOUNDS[a]}.",
            f"A {a} says {SOUNDS[a]}.",
        )
    if k == 2:
        i = r.randrange(7)
        return (
            r.choice([f"Which day comes after {DAYS[i]}?", f"What day is after {DAYS[i]}?"]),
            f"After {DAYS[i]} comes {DAYS[(i + 1) % 7]}.",
            f"{DAYS[(i + 1) % 7]} comes after {DAYS[i]}.",
        )
    if k == 3:
        i = r.randrange(12)
        return (
            f"Which month comes after {MONTHS[i]}?",
            f"After {MONTHS[i]} comes {MONTHS[(i + 1) % 12]}.",
            f"{MONTHS[(i + 1) % 12]} comes after {MONTHS[i]}.",
        )
    if k == 4:
        c = r.choice(list(CAPITALS_ZH))
        return (
            r.choice([f"{c}的首都是哪里？", f"{c}的首都是什么？"]),
            f"问题是{c}的首都。答案是{CAPITALS_ZH[c]}。",
            f"{c}的首都是{CAPITALS_ZH[c]}。",
        )
    if k == 5:
        q, a = r.choice(
            [
                ("Hello!", "Hello! I am a tiny demo model. Ask me to add, spell, sort or tell a story."),
                ("Hi", "Hi! I am a tiny demo model. Ask me to add, spell, sort or tell a story."),
                (
                    "Who are you?",
                    "I am a tiny demo model with about three million parameters. I can add, subtract, spell, sort and tell short stories.",
                ),
                ("你好", "你好！我是一个很小的演示模型。"),
                ("你是谁？", "我是一个很小的演示模型，会加减法、拼写和讲小故事。"),
                ("Thank you!", "You are welcome!"),
                (
                    "What can you do?",
                    "I can add and subtract, spell and reverse words, sort numbers, name capitals and tell short stories.",
                ),
                ("Bye", "Goodbye! 👋"),
                ("Say hello with an emoji.", "Hello! 😀👋"),
                ("Show me a rocket.", "🚀"),
            ]
        )
        return q, "This is a short chat message. I will answer it.", a
    if k == 6:
        a, b = r.randrange(1000), r.randrange(1000)
        if a == b:
            b += 1
        return (
            r.choice([f"Which is larger, {a} or {b}?", f"Which number is bigger, {a} or {b}?"]),
            f"Compare {a} and {b}. The larger one is {max(a, b)}.",
            f"{max(a, b)} is larger.",
        )
    if k == 7:
        n, s = r.randrange(2, 9), r.randrange(50)
        return (
            f"Count from {s} to {s + n}.",
            f"Start at {s} and add one until {s + n}.",
            ", ".join(str(s + i) for i in range(n + 1)),
        )
    n = r.randrange(2, 6)
    f = r.sample(FRUITS, n)
    return f"Sort these words: {', '.join(f)}.", f"In alphabetical order: {', '.join(sorted(f))}.", ", ".join(sorted(f))


def story(r, name=None, animal=None):
    n = name or r.choice(NAMES)
    a = animal or r.choice(ANIMALS)
    b = r.choice([x for x in ANIMALS if x != a])
    adj, adj2, p, t = r.choice(ADJ), r.choice(ADJ), r.choice(PLACES), r.choice(THINGS)
    o = [f"Once upon a time, there was a {adj} {a} named {n}.", f"{n} lived near a {p}."]
    o.append(
        r.choice(
            [
                f"One day, {n} found a {t} by the path.",
                f"One morning, {n} lost a {t} in the {p}.",
                f"One day, {n} wanted to find a {t}.",
            ]
        )
    )
    lost = "lost" in o[-1] or "wanted" in o[-1]
    o.append(
        r.choice(
            [
                f'A {adj2} {b} came along and said, "Hello, {n}! May I help you?"',
                f"Then {n} met a {adj2} {b} who liked to sing.",
                f"A {adj2} {b} was sitting under a tree and looked sad.",
            ]
        )
    )
    if lost:
        o.append(
            r.choice(
                [
                    f"They looked in the {p} all day and found the {t} at last.",
                    f"The {b} knew where the {t} was and showed {n} the way.",
                ]
            )
        )
    else:
        o.append(
            r.choice(
                [
                    f"{n} gave the {t} to the {b}, and the {b} smiled.",
                    f"They played with the {t} until the sun went down.",
                ]
            )
        )
    o.append(
        r.choice(
            [
                f"{n} and the {b} became good friends.",
                f"From that day on, {n} and the {b} played together every day.",
                f"{n} went home and slept well that night.",
            ]
        )
    )
    if r.random() < 0.6:
        o.append(r.choice(["The end.", "They were all very happy.", "And the moon smiled down on them."]))
    return " ".join(o)


def story_chat(r):
    n, a = r.choice(NAMES), r.choice(ANIMALS)
    k = r.randrange(3)
    q = [f"Tell me a story about a {a} named {n}.", f"Tell me a story about a {a}.", "Tell me a story."][k]
    t = [f"The story needs a {a} named {n}.", f"The story needs a {a}.", "I will make up a short story."][k]
    return q, t, story(r, n if k == 0 else None, a if k <= 1 else None)


TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "description": "Get the weather of a city.",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
        },
    },
    {
        "type": "function",
        "function": {
            "name": "get_time",
            "description": "Get the time in a city.",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
        },
    },
    {
        "type": "function",
        "function": {
            "name": "add",
            "description": "Add two numbers.",
            "parameters": {
                "type": "object",
                "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
                "required": ["a", "b"],
            },
        },
    },
]
TOOL_HEAD = (
    "# Tools\n\nYou may call one or more functions to assist with the user query.\n\n"
    "You are provided with function signatures within <tools></tools> XML tags:\n<tools>"
)
TOOL_TAIL = (
    "\n</tools>\n\nFor each function call, return a json object with function name and arguments within "
    "<tool_call></tool_call> XML tags:\n<tool_call>\n"
    '{"name": <function-name>, "arguments": <args-json-object>}\n</tool_call>'
)


def render(system, turns, tools=None):
    """turns: list of (role, content, thinking|None, weight). Returns [(text, weight)]."""
    seg = []
    if tools:
        s = (system + "\n\n" if system else "") + TOOL_HEAD + "".join("\n" + json.dumps(t) for t in tools) + TOOL_TAIL
        seg.append((f"<|im_start|>system\n{s}<|im_end|>\n", 0))
    elif system:
        seg.append((f"<|im_start|>system\n{system}<|im_end|>\n", 0))
    for role, text, think, w in turns:
        if role == "assistant":
            seg.append(("<|im_start|>assistant\n", 0))
            if think is not None and w:
                if think == "":
                    seg.append(("<think>\n\n</think>\n\n", 0))
                else:
                    seg.append((f"<think>\n{think}\n</think>\n\n", 1))
            seg.append((f"{text}<|im_end|>", w))
            seg.append(("\n", 0))
        else:
            seg.append((f"<|im_start|>{role}\n{text}<|im_end|>\n", 0))
    return seg


SYS = [None, None, None, "You are a helpful assistant.", "You are a tiny demo model.", "Answer briefly."]
SKILLS = [(arithmetic, 0.42), (words, 0.2), (facts, 0.2), (story_chat, 0.1)]


def pick(r):
    x = r.random() * sum(w for _, w in SKILLS)
    for f, w in SKILLS:
        x -= w
        if x <= 0:
            return f(r)
    return facts(r)


def sample(r):
    k = r.random()
    if k < 0.06:
        return [(story(r) + "<|endoftext|>", 1)]
    if k < 0.14:
        tools = r.sample(TOOLS, r.randrange(1, 4))
        f = r.choice(tools)["function"]["name"]
        c = r.choice(CITIES)
        if f == "add":
            a, b = r.randrange(100), r.randrange(100)
            q, args, res, ans = f"What is {a} + {b}?", {"a": a, "b": b}, str(a + b), f"{a} + {b} = {a + b}"
        elif f == "get_time":
            h, m = r.randrange(24), r.randrange(60)
            q, args, res, ans = (
                r.choice([f"What time is it in {c}?", f"Tell me the time in {c}."]),
                {"city": c},
                f"{h:02d}:{m:02d}",
                f"It is {h:02d}:{m:02d} in {c}.",
            )
        else:
            w, t = r.choice(["sunny", "rainy", "cloudy", "windy", "snowy"]), r.randrange(-9, 36)
            q, args, res, ans = (
                r.choice([f"What is the weather in {c}?", f"How is the weather in {c}?"]),
                {"city": c},
                json.dumps({"weather": w, "temperature": t}),
                f"It is {w} in {c}, {t} degrees.",
            )
        call = "<tool_call>\n" + json.dumps({"name": f, "arguments": args}) + "\n</tool_call>"
        th = r.choice(["", f"I will call {f}."])
        turns = [("user", q, None, 0), ("assistant", call, th, 1)]
        if r.random() < 0.6:
            # after a tool answer the template keeps the call turn, with its thinking, before the tool response
            kept = call if not th else f"<think>\n{th}\n</think>\n\n{call}"
            th2 = r.choice(["", f"The tool says {res}."])
            turns = [
                ("user", q, None, 0),
                ("assistant", kept, None, 0),
                ("user", f"<tool_response>\n{res}\n</tool_response>", None, 0),
                ("assistant", ans, th2, 1),
            ]
        return render(r.choice(SYS), turns, tools)
    n = 1 if r.random() < 0.8 else r.choice([2, 3])
    turns = []
    for i in range(n):
        q, t, a = pick(r)
        turns.append(("user", q, None, 0))
        turns.append(("assistant", a, (t if r.random() < 0.6 else "") if i == n - 1 else None, 1))
    return render(r.choice(SYS), turns)


if __name__ == "__main__":
    r = random.Random(int(sys.argv[2]) if len(sys.argv) > 2 else 0)
    with open(sys.argv[3] if len(sys.argv) > 3 else "corpus.jsonl", "w") as f:
        for _ in range(int(sys.argv[1])):
            f.write(json.dumps(sample(r), ensure_ascii=False) + "\n")
