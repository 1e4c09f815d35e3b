"""Golden values of GGUF's storage types, as `gguf` for Python decodes them.

    gguf_types.py OUT.safetensors

Writes for each type "<type>.blocks" (bytes: each scale at its extremes, every byte alike, then random ones) and "<type>.values" (float32).
The random numbers are the same in every run. Scales are finite: qwasm refuses blocks whose scales are not.
"""
import sys
from importlib.metadata import version

import gguf
import numpy as np
from gguf.constants import GGML_QUANT_SIZES
from safetensors.numpy import save_file

# Where a block has its float16 scales.
SCALES = {
    "F16": [0],
    "Q8_0": [0],
    "Q4_0": [0],
    "Q4_1": [0, 2],
    "Q5_0": [0],
    "Q5_1": [0, 2],
    "Q2_K": [80, 82],
    "Q3_K": [108],
    "Q4_K": [0, 2],
    "Q5_K": [0, 2],
    "Q6_K": [208],
    "IQ4_NL": [0],
}
OTHERS = ["F32", "BF16", "MXFP4"]
# Zeros, the ends of the subnormals, one, the largest, and their opposites.
EXTREMES = [sign | bits for bits in (0, 1, 0x03FF, 0x0400, 0x3C00, 0x7BFF) for sign in (0, 0x8000)]
ALIKE = [0x00, 0xFF, 0x80, 0x7F, 0x55, 0xAA]


def random_blocks(rng, name, count):
    size = GGML_QUANT_SIZES[gguf.GGMLQuantizationType[name]][1]
    blocks = rng.integers(0, 256, (count, size), dtype=np.uint8)
    for i, byte in enumerate(ALIKE):
        blocks[i] = byte
    if name == "MXFP4":
        blocks[:, 0] = np.arange(count)
    for place in SCALES.get(name, []):
        halves = rng.integers(0, 0x7C00, count, dtype=np.uint16) | rng.choice([0, 0x8000], count).astype(np.uint16)
        halves[: len(EXTREMES)] = rng.permutation(EXTREMES)
        blocks[:, place : place + 2] = halves.view(np.uint8).reshape(count, 2)
    return blocks


def finite_floats(blocks, exponent_byte, exponent):
    """Takes the highest bit of each exponent away where all are set."""
    full = (blocks[:, exponent_byte] & exponent) == exponent
    blocks[full, exponent_byte] ^= 0x40
    return blocks


def main(out):
    rng = np.random.default_rng(7)
    tensors = {}
    for name in [*SCALES, *OTHERS]:
        kind = gguf.GGMLQuantizationType[name]
        elements = GGML_QUANT_SIZES[kind][0]
        count = 253 if name == "MXFP4" else 1024 if elements == 1 else 40 if elements == 32 else 16
        blocks = random_blocks(rng, name, count)
        if name in ("F32", "BF16"):
            blocks = finite_floats(blocks, blocks.shape[1] - 1, 0x7F)
        tensors[f"{name}.blocks"] = blocks.reshape(1, -1)
        tensors[f"{name}.values"] = gguf.quants.dequantize(blocks.reshape(1, -1), kind).reshape(-1)
    for name, values in tensors.items():
        assert name.endswith("blocks") or np.isfinite(values).all(), name
    save_file(tensors, out, metadata={"oracle": f"gguf {version('gguf')}, numpy {np.__version__}"})


main(sys.argv[1])
