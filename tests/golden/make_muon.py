#!/usr/bin/env python3
"""Writes muon.txt beside it: what torch.optim.Muon (torch 2.9 and later) makes of two matrices in three steps.

  python3 make_muon.py        (needs PyPI torch; run once, the result is committed)

torch.optim.Muon orthogonalizes in bfloat16; here its own code runs in fp64, so that formulas can be told from rounding.
"""
import torch

from make_golden import Golden, wave


def main():
    torch.Tensor.bfloat16 = lambda tensor: tensor.double()
    golden = Golden("muon.txt")
    for rows, cols in ((4, 6), (6, 4)):
        weight = torch.nn.Parameter(wave((rows, cols), 0.2))
        muon = torch.optim.Muon([weight], lr=0.02, weight_decay=0.1, momentum=0.95, nesterov=True,
                                ns_coefficients=(3.4445, -4.7750, 2.0315), ns_steps=5,
                                adjust_lr_fn="match_rms_adamw")
        for step in range(1, 4):
            weight.grad = wave((rows, cols), 0.2 + step)
            muon.step()
            golden.add(f"{rows}x{cols}_step{step}", weight)
    golden.write()


if __name__ == "__main__":
    main()
