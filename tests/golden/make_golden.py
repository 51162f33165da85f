#!/usr/bin/env python3
"""Writes the golden files beside it: forward values and gradients of the layers and of tiny models, computed in
fp64 by torch.nn.functional and torch's autograd, an implementation that shares no code with core/. The DeepSeek-V3
and Qwen parts and those of other forms of a block are held to those of the transformers package as well (deepseek.py,
qwen.py, forms.py), which compute in fp32.

  python3 make_golden.py        (needs PyPI torch and transformers; run once, the results are committed)

Inputs and weights come from `wave`, which the C++ tests evaluate too, so that the files hold results only.
File format: one tensor a line, `name d0 d1 ... : v0 v1 ...`.
"""
import math
import os

import torch
import torch.nn.functional as F

torch.set_default_dtype(torch.float64)
HERE = os.path.dirname(os.path.abspath(__file__))


def wave(shape, salt, scale=1.0, offset=0.0):
    n = math.prod(shape)
    return torch.tensor([offset + scale * math.sin(0.7 * i + salt) for i in range(n)]).reshape(shape)


class Golden:
    def __init__(self, file):
        self.file, self.lines = file, []

    def add(self, name, tensor):
        values = " ".join(f"{v:.13g}" for v in tensor.detach().contiguous().flatten().tolist())
        self.lines.append(f"{name} {' '.join(map(str, tensor.shape))} : {values}\n")

    def write(self):
        with open(os.path.join(HERE, self.file), "w") as f:
            f.writelines(self.lines)


def batch(V, S, B):
    tokens = torch.tensor([[(3 * b + 2 * s) % V for s in range(S)] for b in range(B)])
    targets = torch.tensor([[(5 * b + 4 * s + 1) % V for s in range(S)] for b in range(B)])
    targets[1, 2] = -100
    return tokens, targets


def write_model(file, w, **tensors):
    """What a model was given and answered, then the gradient of each weight (zeros: it was not used)."""
    g = Golden(file)
    for name, tensor in tensors.items():
        g.add(name, tensor)
    for name, t in w.items():
        g.add("grad." + name, torch.zeros_like(t) if t.grad is None else t.grad)
    g.write()


def leaf(shape, salt, scale=1.0, offset=0.0):
    return wave(shape, salt, scale, offset).requires_grad_(True)


def backward(y, salt):
    y.backward(wave(y.shape, salt))


def rope(x, theta):                                    # x [B, h, S, D]
    S, D = x.shape[-2:]
    angle = torch.outer(torch.arange(S, dtype=torch.float64), theta ** (-torch.arange(0, D, 2, dtype=torch.float64) / D))
    turn = torch.polar(torch.ones_like(angle), angle)  # as complex numbers: another way than the two products in core
    z = torch.complex(x[..., : D // 2], x[..., D // 2:]) * turn
    return torch.cat((z.real, z.imag), -1)


def attention(qkv, heads, groups, theta):              # qkv [S, B, (heads + 2 groups) D]
    S, B, W = qkv.shape
    D = W // (heads + 2 * groups)
    q, k, v = qkv.split([heads * D, groups * D, groups * D], -1)
    q, k, v = (t.reshape(S, B, -1, D).permute(1, 2, 0, 3) for t in (q, k, v))
    if theta:
        q, k = rope(q, theta), rope(k, theta)
    k, v = (t.repeat_interleave(heads // groups, 1) for t in (k, v))
    scores = q @ k.transpose(-1, -2) / math.sqrt(D)
    scores = scores.masked_fill(torch.ones(S, S, dtype=torch.bool).triu(1), -math.inf)
    return (F.softmax(scores, -1) @ v).permute(2, 0, 1, 3).reshape(S, B, heads * D)


def layers():
    g = Golden("layers.txt")
    x, w = leaf((3, 2, 10), 0.1), leaf((10,), 0.2, 0.5, 1.0)
    y = F.rms_norm(x, (10,), w, 1e-5)
    backward(y, 0.3)
    for n, t in (("rms_norm.y", y), ("rms_norm.dx", x.grad), ("rms_norm.dw", w.grad)):
        g.add(n, t)

    x = leaf((3, 2, 12), 0.4, 3.0)
    gate, up = x.chunk(2, -1)
    y = F.silu(gate) * up
    backward(y, 0.5)
    g.add("swiglu.y", y)
    g.add("swiglu.dx", x.grad)

    x = leaf((1, 2, 5, 6), 0.6)
    y = rope(x, 100.0)
    backward(y, 0.7)
    g.add("rope.y", y)
    g.add("rope.dx", x.grad)

    for name, heads, groups, theta in (("mha", 2, 2, 100.0), ("gqa", 4, 2, 100.0), ("mqa", 2, 1, 0.0)):
        x = leaf((5, 2, (heads + 2 * groups) * 4), 0.8, 2.0)
        y = attention(x, heads, groups, theta)
        backward(y, 0.9)
        g.add(f"attention.{name}.y", y)
        g.add(f"attention.{name}.dx", x.grad)
    g.write()


# The two tiny models. Weight k of the list is 0.3 * wave(salt k); norm weights stand around 1.
def model(file, llama):
    L, H, heads, groups, ffn, V, S, B = 2, 4, 2, (1 if llama else 2), 6, 7, 5, 2
    qkv_out = H + 2 * groups * (H // heads)
    w = {}

    def param(name, *shape):
        w[name] = leaf(shape, float(len(w)), 0.3, 1.0 if name.endswith("norm.weight") else 0.0)

    param("embedding.weight", V, H)
    if not llama:
        param("position.weight", S, H)
    norm_names = ["weight"] if llama else ["weight", "bias"]
    for l in range(L):
        p = f"layers.{l}."
        mlp = (("mlp.gate_up", 2 * ffn, H) if llama else ("mlp.up", ffn, H), ("mlp.down", H, ffn))
        for n in norm_names:
            param(p + f"attention_norm.{n}", H)
        for name, out, inp in (("attention.qkv", qkv_out, H), ("attention.out", H, H)) + mlp:
            param(p + name + ".weight", out, inp)
            if not llama:
                param(p + name + ".bias", out)
        for n in norm_names:
            param(p + f"mlp_norm.{n}", H)
    for n in norm_names:
        param(f"final_norm.{n}", H)
    if llama:
        param("head.weight", V, H)

    def norm(x, name):
        if llama:
            return F.rms_norm(x, (H,), w[name + ".weight"], 1e-5)
        return F.layer_norm(x, (H,), w[name + ".weight"], w[name + ".bias"], 1e-5)

    def linear(x, name):
        return F.linear(x, w[name + ".weight"], w.get(name + ".bias"))

    tokens, targets = batch(V, S, B)
    x = F.embedding(tokens, w["embedding.weight"])      # [B, S, H]
    if not llama:
        x = x + w["position.weight"]
    for l in range(L):
        p = f"layers.{l}."
        qkv = linear(norm(x, p + "attention_norm"), p + "attention.qkv").transpose(0, 1)
        x = x + linear(attention(qkv, heads, groups, 50.0 if llama else 0.0).transpose(0, 1), p + "attention.out")
        h = norm(x, p + "mlp_norm")
        if llama:
            gate, up = linear(h, p + "mlp.gate_up").chunk(2, -1)
            h = F.silu(gate) * up
        else:
            h = F.gelu(linear(h, p + "mlp.up"), approximate="tanh")
        x = x + linear(h, p + "mlp.down")
    logits = F.linear(norm(x, "final_norm"), w["head.weight"] if llama else w["embedding.weight"])
    loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-100, reduction="sum")
    loss.backward()
    write_model(file, w, tokens=tokens, targets=targets, loss=loss.reshape(1), logits=logits)


if __name__ == "__main__":
    layers()
    model("llama_model.txt", True)
    model("gpt2_model.txt", False)
    import deepseek

    deepseek.write_all()
    import qwen

    qwen.write_all()
    import forms

    forms.write_all()
    import gpt_oss

    gpt_oss.write_all()
    import llama4

    llama4.write_all()
    import qwen3_next

    qwen3_next.write_all()
    import nemotron_h

    nemotron_h.write_all()
    import rope_scaling

    rope_scaling.write_all()
