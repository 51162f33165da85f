"""Stretched rotary frequencies as the transformers package computes them (fp32), and what it multiplies cosines and
sines with:

  python3 rope_scaling.py        (needs PyPI torch and transformers; run once with 5.23.0, the result is committed)
"""
import torch
from transformers import LlamaConfig
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

from make_golden import Golden

LLAMA3 = dict(rope_type="llama3", rope_theta=5e5, low_freq_factor=1.0, high_freq_factor=4.0,
              original_max_position_embeddings=8192)
YARN = dict(rope_type="yarn", rope_theta=1e6, factor=4.0, original_max_position_embeddings=32768)
# name: width of a head, longest sequence, parameters, length of this sequence
CASES = {
    "llama31_8b": (128, 131072, dict(LLAMA3, factor=8.0), None),
    "llama32_1b": (64, 131072, dict(LLAMA3, factor=32.0), None),
    "llama4_scout": (128, 10485760, dict(LLAMA3, factor=16.0, high_freq_factor=1.0), None),
    "linear": (64, 8192, dict(rope_type="linear", rope_theta=1e4, factor=4.0), None),
    "dynamic_1000": (64, 2048, dict(rope_type="dynamic", rope_theta=1e4, factor=2.0), 1000),
    "dynamic_2049": (64, 2048, dict(rope_type="dynamic", rope_theta=1e4, factor=2.0), 2049),
    "dynamic_5000": (64, 2048, dict(rope_type="dynamic", rope_theta=1e4, factor=2.0), 5000),
    "yarn": (128, 131072, YARN, None),
    "yarn_not_truncated": (64, 131072, dict(YARN, rope_theta=150000.0, factor=32.0, truncate=False,
                                            original_max_position_embeddings=4096), None),
    "yarn_mscales": (64, 131072, dict(YARN, mscale=0.7, mscale_all_dim=0.5, beta_fast=16, beta_slow=2), None),
    "yarn_attention_factor": (64, 131072, dict(YARN, attention_factor=1.3), None),
}


def write_all():
    g = Golden("rope_scaling.txt")
    for name, (width, longest, parameters, length) in CASES.items():
        config = LlamaConfig(head_dim=width, max_position_embeddings=longest, rope_parameters=parameters)
        frequencies, factor = ROPE_INIT_FUNCTIONS[parameters["rope_type"]](config, seq_len=length)
        g.add(f"{name}.frequencies", frequencies.double())
        g.add(f"{name}.scale", torch.tensor([factor]))
    g.write()


if __name__ == "__main__":
    write_all()
