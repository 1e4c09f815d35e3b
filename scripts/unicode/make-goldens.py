"""Asks Hugging Face tokenizers (the oracle of core/text) about every code point, NFC and added tokens; writes tests/golden/text-*.json.

    pip install tokenizers==0.23.3
    python scripts/unicode/make-goldens.py
"""
import copy, json, pathlib, random, unicodedata
import tokenizers
from tokenizers import Regex, Tokenizer, normalizers, pre_tokenizers

ROOT = pathlib.Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "golden"
DEMO = json.loads((ROOT / "models" / "demo" / "tokenizer.json").read_text())
POINTS = [c for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]
CHUNK = 4096
nfc = normalizers.NFC().normalize_str
random = random.Random(16)


def chunks(): return (POINTS[i:i + CHUNK] for i in range(0, len(POINTS), CHUNK))


def matched_by(regex):
    remove = pre_tokenizers.Split(Regex(regex), "removed")
    for chunk in chunks():
        kept = {ord(c) for piece, _ in remove.pre_tokenize_str("".join(map(chr, chunk))) for c in piece}
        yield from (c for c in chunk if c not in kept)


def word_characters():
    """The characters next to which a single_word token does not match."""
    data = copy.deepcopy(DEMO)
    data["normalizer"] = None
    data["added_tokens"].append({"id": 2025, "content": "<w>", "single_word": True, "lstrip": False, "rstrip": False, "normalized": False, "special": False})
    tokenizer = Tokenizer.from_str(json.dumps(data))
    for chunk in chunks():
        encoding = tokenizer.encode("".join(f"{chr(c)}<w> " for c in chunk), add_special_tokens=False)
        found = {begin for id, (begin, _) in zip(encoding.ids, encoding.offsets) if id == 2025}
        yield from (c for i, c in enumerate(chunk) if 5 * i + 1 not in found)


def ranges(points):
    out = []
    for c in points:
        if out and out[-1][1] == c - 1: out[-1][1] = c
        else: out.append([c, c])
    return out


def nfc_cases():
    changed = [chr(c) for c in POINTS if nfc(chr(c)) != chr(c)]
    composed = [chr(c) for c in POINTS if unicodedata.normalize("NFD", chr(c)) != chr(c) and not 0xAC00 <= c <= 0xD7A3]
    marks = [chr(c) for c in POINTS if unicodedata.combining(chr(c))]
    jamo = [chr(c) for c in [*range(0x10FE, 0x1115), *range(0x115F, 0x1178), *range(0x11A5, 0x11C5), 0xAC00, 0xAC01, 0xD788, 0xD7A3]]
    pools = [composed, composed, marks, marks, jamo, list("aeiouAEsSqy "), list("\u0301\u0323\u0302\u0345\u0334\u0344\u093c")]
    texts = []
    for _ in range(1500):
        text = "".join(random.choice(random.choice(pools)) for _ in range(random.randrange(2, 9)))
        texts.append(unicodedata.normalize("NFD", text) if random.random() < 0.5 else text)
    return [[t, nfc(t)] for t in [*changed, *texts]]


FLAGS = ("single_word", "lstrip", "rstrip", "normalized", "special")
CONTENTS = ["<a>", "<a>b", "<", "<<", "a", "ab", " ", "  ", "\n", "é", "e\u0301", "<|x|>", "<|x|>\n", "中", "word", "x y", "\u0301", "ſ", "_", "<ab>"]
PIECES = [*CONTENTS, "e", "\u0301", ">", "b", "   ", "\t", "\u00a0", "cafe", ".", "9", "|x|>", "\u0323", "!"]


def encode(tokenizer, text):
    """None where the oracle breaks: white space that one token swallowed (rstrip) and that is a token itself makes it panic or read text twice."""
    try: encoding = tokenizer.encode(text, add_special_tokens=False)
    except BaseException as panic:
        if type(panic).__name__ != "PanicException": raise
        return None
    ends = [end for _, end in encoding.offsets]
    return encoding if ends == sorted(ends) else None


def added_token_cases():
    """Random sets of added tokens with random flags, and what they make of random text."""
    cases = []
    while len(cases) < 120:
        data = copy.deepcopy(DEMO)
        known = data["model"]["vocab"]
        data["normalizer"] = random.choice([None, {"type": "NFC"}])
        chosen = [c for c in random.sample(CONTENTS, random.randrange(1, 7)) if c not in known]
        data["added_tokens"] = added = [{"id": len(known) + i, "content": c, **{f: random.random() < 0.35 for f in FLAGS}} for i, c in enumerate(chosen)]
        # The oracle decodes a normalized token to its normalized text; the core to the text in the file. Such tokens do not exist outside tests.
        if not added or any(a["normalized"] and nfc(a["content"]) != a["content"] for a in added): continue
        tokenizer = Tokenizer.from_str(json.dumps(data))
        assert all(tokenizer.token_to_id(a["content"]) == a["id"] for a in added)
        texts = ["".join(random.choice(PIECES) for _ in range(random.randrange(1, 12))) for _ in range(8)]
        results = []
        for text in texts:
            encoding = encode(tokenizer, text)
            if encoding is None: continue
            ids = encoding.ids
            results.append({"text": text, "ids": ids, "decoded": tokenizer.decode(ids, skip_special_tokens=False), "decoded_skip_special": tokenizer.decode(ids)})
        cases.append({"nfc": data["normalizer"] is not None, "added_tokens": added, "texts": results})
    return cases


def write(name, **content):
    path = GOLDEN / name
    path.write_text(json.dumps({"oracle": {"tokenizers": tokenizers.__version__}, **content}, separators=(",", ":")) + "\n")
    print(path.name, path.stat().st_size)


if __name__ == "__main__":
    classes = {"letter": ranges(matched_by(r"\p{L}")), "number": ranges(matched_by(r"\p{N}")), "space": ranges(matched_by(r"\s")), "punctuation": ranges(matched_by(r"\p{P}")), "word": ranges(word_characters()),
               "folds_to_contraction_letters": ranges(matched_by("(?i:[strevmld])"))}
    write("text-unicode.json", classes=classes, nfc=nfc_cases())
    write("text-added-tokens.json", cases=added_token_cases())
