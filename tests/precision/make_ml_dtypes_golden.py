"""Writes golden/NAME.txt: what the PyPI package ml_dtypes makes of the formats of 4 and 8 bits.

    PYTHON tests/precision/make_ml_dtypes_golden.py      a Python with numpy and ml_dtypes

Of each format a line "code HH XXXXXXXX" for every code with the bits of its value in fp32, then lines "of XXXXXXXX HH":
the bits of an fp32 number and its code. The numbers are those of the format, the middles between neighbours, the fp32
numbers next to both, the edges of the range, subnormals and random ones.
"""

import pathlib
import random

import ml_dtypes
import numpy as np

FORMATS = {
    "e4m3": (ml_dtypes.float8_e4m3fn, 256),
    "e5m2": (ml_dtypes.float8_e5m2, 256),
    "e2m1": (ml_dtypes.float4_e2m1fn, 16),
    "e8m0": (ml_dtypes.float8_e8m0fnu, 256),
}
NUMBERS = 1300


def bits_of(x):
    return np.asarray(x, np.float32).view(np.uint32)


def inputs(name, values):
    generator = random.Random(f"ranklab {name}")
    finite = sorted({abs(float(v)) for v in values if np.isfinite(v)})
    exact = np.array(finite, np.float32)
    with np.errstate(over="ignore"):
        between = [(a + b) / 2 for a, b in zip(finite, finite[1:])]
        middles = np.array(between + [finite[-1] * 33 / 32, finite[-1] * 1.5], np.float32)
        around = np.concatenate([np.nextafter(middles, np.float32(0)), np.nextafter(middles, np.float32(np.inf))])
    edges = np.array([np.inf, 3.4e38, 1e-45, 1e-40, 1.1754944e-38], np.float32)
    positive = np.concatenate([exact, middles, around, edges])
    chosen = [int(b) for b in bits_of(positive)]
    low, high = np.log2(finite[1]) - 3, np.log2(finite[-1]) + 1
    while len(chosen) < NUMBERS:
        size = np.float32(2 ** generator.uniform(max(low, -149), min(high, 127.9)))
        chosen.append(int(bits_of(size)))
    if name != "e8m0":
        chosen = [b | (i % 2 << 31) for i, b in enumerate(chosen)]
        chosen += [0x80000000, 0x7F800000, 0xFF800000]
    if name != "e2m1":  # which has no NaN
        chosen.append(0x7FC00000)
    # Zero has no code in E8M0: NaN in ml_dtypes, the smallest scale in ranklab. Between 2^-127 and 2^-126 ml_dtypes
    # always rounds up.
    odd = lambda b: name == "e8m0" and (b == 0 or 0x00400000 < b < 0x00800000)
    return [b for b in dict.fromkeys(chosen) if not odd(b)]


def main():
    folder = pathlib.Path(__file__).parent / "golden"
    folder.mkdir(exist_ok=True)
    for name, (dtype, codes) in FORMATS.items():
        values = np.arange(codes, dtype=np.uint8).view(dtype).astype(np.float32)
        numbers = np.array(inputs(name, values), np.uint32)
        with np.errstate(over="ignore", invalid="ignore"):
            coded = numbers.view(np.float32).astype(dtype).view(np.uint8)
        lines = [f"# {dtype.__name__} of ml_dtypes {ml_dtypes.__version__} (make_ml_dtypes_golden.py)"]
        lines += [f"code {code:02x} {bits:08x}" for code, bits in enumerate(bits_of(values))]
        lines += [f"of {bits:08x} {code:02x}" for bits, code in zip(numbers, coded)]
        (folder / f"{name}.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
