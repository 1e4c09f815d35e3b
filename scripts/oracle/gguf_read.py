"""What the `gguf` package for Python (0.19.0) reads in GGUF files that qwasm wrote.

    gguf_read.py GOLDEN.json NAME=FILE.gguf …

Writes for each name the file's size and SHA-256, its keys (type and value; of long arrays count and SHA-256 of their JSON) and its tensors
(type, shape as NumPy has it, SHA-256 of the decoded values as little-endian float32).
"""
import hashlib
import importlib.metadata
import json
import sys
from pathlib import Path

import gguf
import numpy as np

LONGEST = 8  # items of arrays that are written down


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def describe(field):
    value = field.contents()
    about = {"type": [kind.name for kind in field.types]}
    if not isinstance(value, list) or len(value) <= LONGEST:
        return about | {"value": value}
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return about | {"count": len(value), "sha256": sha256(text.encode())}


def read(path):
    reader = gguf.GGUFReader(path)
    keys = {name: describe(field) for name, field in reader.fields.items() if not name.startswith("GGUF.")}
    tensors = {}
    for tensor in reader.tensors:
        values = gguf.quants.dequantize(tensor.data, tensor.tensor_type).astype("<f4")
        tensors[tensor.name] = {"type": tensor.tensor_type.name, "shape": list(map(int, values.shape)), "sha256": sha256(np.ascontiguousarray(values).tobytes())}
    data = Path(path).read_bytes()
    return {"bytes": len(data), "sha256": sha256(data), "keys": keys, "tensors": tensors}


golden, *files = sys.argv[1:]
about = {"gguf": importlib.metadata.version("gguf"), "files": {name: read(path) for name, path in (file.split("=", 1) for file in files)}}
Path(golden).write_text(json.dumps(about, ensure_ascii=False) + "\n")
