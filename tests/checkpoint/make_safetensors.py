"""Writes python_file.b64, the file that safetensors_python_test.cpp reads and must write byte for byte itself:
every element type, a scalar, an empty tensor, as the safetensors package (0.8.0) lays them out.

    pip install safetensors==0.8.0 && python tests/checkpoint/make_safetensors.py
"""

import base64
import ctypes
import os
import textwrap

from safetensors import TensorSpec, serialize

# Every byte of element i of tensor number n is 16 * n + i, but for bool.
TYPES = [
    ("bool", 1), ("uint8", 1), ("int8", 1), ("float8_e5m2", 1), ("float8_e4m3fn", 1), ("int16", 2), ("uint16", 2), ("float16", 2),
    ("bfloat16", 2), ("int32", 4), ("uint32", 4), ("float32", 4), ("float64", 8), ("int64", 8), ("uint64", 8),
]


def main() -> None:
    tensors = {}
    for number, (dtype, size) in enumerate(TYPES):
        data = b"".join(bytes([16 * number + i] * size) for i in range(3))
        tensors[f"t.{dtype}"] = {"dtype": dtype, "shape": [3, 1], "data": data if dtype != "bool" else b"\x01\x00\x01"}
    tensors["scalar"] = {"dtype": "float32", "shape": [], "data": bytes([0, 0, 0xC0, 0x3F])}
    tensors["empty"] = {"dtype": "int16", "shape": [2, 0], "data": b""}
    tensors["\u00fc \"quoted\" \\"] = {"dtype": "uint8", "shape": [1], "data": b"\x07"}
    buffers = {name: ctypes.create_string_buffer(tensor["data"], len(tensor["data"])) for name, tensor in tensors.items()}
    specs = {
        name: TensorSpec(dtype=tensor["dtype"], shape=tensor["shape"], data_ptr=ctypes.addressof(buffers[name]), data_len=len(tensor["data"]))
        for name, tensor in tensors.items()
    }
    text = base64.b64encode(serialize(specs, {"format": "pt"})).decode()
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "python_file.b64"), "w") as file:
        file.write("\n".join(textwrap.wrap(text, 120)) + "\n")


if __name__ == "__main__":
    main()
