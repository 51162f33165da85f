"""The gpt-oss part of make_golden.py: a tiny model in plain torch and fp64, compared with the class of the transformers
package before it is written. A learned sink of each head, a window in the first of two layers, YaRN without rounding,
biases everywhere, the router's too, and experts whose gate and other half are bounded."""
import math

import torch
import torch.nn.functional as F
from transformers import GptOssConfig, GptOssForCausalLM

from deepseek import logits_of, write_compared
from make_golden import batch, leaf

EPS, THETA, LAYERS, V, H, FFN, S, WINDOW = 1e-6, 50.0, 2, 7, 8, 5, 6, 3
HEADS, GROUPS, D, E, K, BOUND = 4, 2, 4, 5, 2, 7.0
YARN = dict(factor=4.0, original=4, fast=2.0, slow=0.25)


def make_weights():
    w = {}

    def param(name, *shape):
        w[name] = leaf(shape, float(len(w)), 0.3, 1.0 if name.endswith("norm.weight") else 0.0)

    def linear(name, out, inp):
        param(name + ".weight", out, inp)
        param(name + ".bias", out)

    param("embedding.weight", V, H)
    for l in range(LAYERS):
        p = f"layers.{l}."
        param(p + "attention_norm.weight", H)
        linear(p + "attention.qkv", (HEADS + 2 * GROUPS) * D, H)
        param(p + "attention.sinks.weight", HEADS)
        linear(p + "attention.out", H, HEADS * D)
        param(p + "mlp_norm.weight", H)
        linear(p + "mlp.router", E, H)
        for e in range(E):
            linear(f"{p}mlp.experts.{e}.gate_up", 2 * FFN, H)
            linear(f"{p}mlp.experts.{e}.down", H, FFN)
    param("final_norm.weight", H)
    param("head.weight", V, H)
    return w


def frequencies():
    """Pairs that turn more often than `fast` within the original length keep theirs, those below `slow` are divided."""
    pair = torch.arange(0, D, 2, dtype=torch.float64)
    plain = THETA ** (-pair / D)
    index = lambda turns: D * math.log(YARN["original"] / (turns * 2 * math.pi)) / (2 * math.log(THETA))
    low, high = max(index(YARN["fast"]), 0), min(index(YARN["slow"]), D - 1)
    divided = ((pair / 2 - low) / (high - low)).clamp(0, 1)
    return plain * (1 - divided) + plain / YARN["factor"] * divided


def turned(x):                                         # x [B, h, S, D]
    angle = torch.outer(torch.arange(S, dtype=torch.float64), frequencies())
    turn = torch.polar(torch.full_like(angle, 0.1 * math.log(YARN["factor"]) + 1), angle)
    z = torch.complex(x[..., : D // 2], x[..., D // 2:]) * turn
    return torch.cat((z.real, z.imag), -1)


def linear(x, w, name):
    return F.linear(x, w[name + ".weight"], w[name + ".bias"])


def attend(x, w, p, window):                           # x [B, S, H]
    q, k, v = linear(x, w, p + "qkv").split([HEADS * D, GROUPS * D, GROUPS * D], -1)
    q, k, v = (t.unflatten(-1, (-1, D)).transpose(1, 2) for t in (q, k, v))
    q, k = turned(q), turned(k)
    k, v = (t.repeat_interleave(HEADS // GROUPS, 1) for t in (k, v))
    behind = torch.arange(S).unsqueeze(1) - torch.arange(S)
    weights = torch.exp(q @ k.transpose(-1, -2) / math.sqrt(D)) * ((behind >= 0) & (behind < window))
    sink = torch.exp(w[p + "sinks.weight"]).view(-1, 1, 1)
    out = (weights @ v) / (weights.sum(-1, keepdim=True) + sink)
    return linear(out.transpose(1, 2).flatten(2), w, p + "out")


def experts(x, w, p):
    flat = x.reshape(-1, H)
    best, chosen = linear(flat, w, p + "router").topk(K, -1)
    shares = torch.zeros(flat.shape[0], E, dtype=x.dtype).scatter(1, chosen, F.softmax(best, -1))
    y = 0
    for e in range(E):
        gate, up = linear(flat, w, f"{p}experts.{e}.gate_up").chunk(2, -1)
        gate, up = gate.clamp(max=BOUND), up.clamp(-BOUND, BOUND)
        y = y + shares[:, e: e + 1] * linear((up + 1) * gate * torch.sigmoid(1.702 * gate), w, f"{p}experts.{e}.down")
    return y.view_as(x)


def forward(w, tokens):
    norm = lambda x, name: F.rms_norm(x, (H,), w[name + ".weight"], EPS)
    x = F.embedding(tokens, w["embedding.weight"])
    for l in range(LAYERS):
        p = f"layers.{l}."
        x = x + attend(norm(x, p + "attention_norm"), w, p + "attention.", WINDOW if l == 0 else S)
        x = x + experts(norm(x, p + "mlp_norm"), w, p + "mlp.")
    return F.linear(norm(x, "final_norm"), w["head.weight"])


def alternating(x):                                    # the halves of the last dimension, one by one
    gate, up = x.chunk(2, -1)
    return torch.stack((gate, up), -1).flatten(-2)


def their_state(w):
    state = {"model.embed_tokens.weight": w["embedding.weight"], "model.norm.weight": w["final_norm.weight"],
             "lm_head.weight": w["head.weight"]}
    for l in range(LAYERS):
        a, b = f"layers.{l}.", f"model.layers.{l}."
        state[b + "input_layernorm.weight"] = w[a + "attention_norm.weight"]
        state[b + "post_attention_layernorm.weight"] = w[a + "mlp_norm.weight"]
        state[b + "self_attn.sinks"] = w[a + "attention.sinks.weight"]
        for kind in ("weight", "bias"):
            for name, part in zip("qkv", w[f"{a}attention.qkv.{kind}"].split([HEADS * D, GROUPS * D, GROUPS * D])):
                state[f"{b}self_attn.{name}_proj.{kind}"] = part
            state[f"{b}self_attn.o_proj.{kind}"] = w[f"{a}attention.out.{kind}"]
            state[f"{b}mlp.router.{kind}"] = w[f"{a}mlp.router.{kind}"]
        of_all = lambda name: torch.stack([w[f"{a}mlp.experts.{e}.{name}"] for e in range(E)])
        state[b + "mlp.experts.gate_up_proj"] = alternating(of_all("gate_up.weight").transpose(1, 2))
        state[b + "mlp.experts.gate_up_proj_bias"] = alternating(of_all("gate_up.bias"))
        state[b + "mlp.experts.down_proj"] = of_all("down.weight").transpose(1, 2)
        state[b + "mlp.experts.down_proj_bias"] = of_all("down.bias")
    return state


def transformers_logits(w, tokens):
    rope = dict(rope_type="yarn", rope_theta=THETA, factor=YARN["factor"], beta_fast=YARN["fast"],
                beta_slow=YARN["slow"], truncate=False, original_max_position_embeddings=YARN["original"])
    model = GptOssForCausalLM(GptOssConfig(
        vocab_size=V, hidden_size=H, intermediate_size=FFN, num_hidden_layers=LAYERS, num_attention_heads=HEADS,
        num_key_value_heads=GROUPS, head_dim=D, num_local_experts=E, num_experts_per_tok=K, sliding_window=WINDOW,
        rms_norm_eps=EPS, rope_parameters=rope, max_position_embeddings=16, attn_implementation="eager",
        experts_implementation="eager", pad_token_id=0, bos_token_id=0, eos_token_id=0)).double().eval()
    return logits_of(model, their_state(w), tokens)


def write_all():
    w = make_weights()
    tokens, targets = batch(V, S, 2)
    write_compared("gpt_oss", w, tokens, targets, forward(w, tokens), transformers_logits(w, tokens))
