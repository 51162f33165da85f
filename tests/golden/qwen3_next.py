"""The Qwen3-Next part of make_golden.py: a tiny model in plain torch and fp64, compared with the class of the
transformers package before it is written. Of four layers the first three have Gated DeltaNet, written as its recurrence
position by position, and the last has gated softmax attention of which half a head turns; all have experts and a shared
expert with a gate."""
import math

import torch
import torch.nn.functional as F
from transformers import Qwen3NextConfig, Qwen3NextForCausalLM

from deepseek import logits_of, write_compared
from make_golden import batch, leaf, rope

EPS, THETA, LAYERS, V, H, INNER, S = 1e-6, 50.0, 4, 7, 6, 3, 7
HEADS, GROUPS, D, TURNS, E, TOPK = 4, 2, 4, 2, 5, 2
KEYS, VALUES, DK, DV, K = 2, 4, 3, 2, 4                 # heads and widths of linear attention; its convolution


def is_linear(layer):
    return layer < 3


def make_weights():
    w = {}

    def param(name, *shape):                           # all norms but that of linear attention multiply by 1 + theirs
        w[name] = leaf(shape, float(len(w)), 0.3, 1.0 if name.endswith("norm.weight") else 0.0)

    param("embedding.weight", V, H)
    for l in range(LAYERS):
        p, a = f"layers.{l}.", f"layers.{l}.attention."
        param(p + "attention_norm.weight", H)
        if is_linear(l):
            param(a + "in_proj.weight", 2 * KEYS * DK + 2 * VALUES * DV + 2 * VALUES, H)
            param(a + "conv.weight", 2 * KEYS * DK + VALUES * DV, 1, K)
            param(a + "a_log.weight", VALUES)
            param(a + "dt_bias.weight", VALUES)
            param(a + "out_norm.weight", DV)
            param(a + "out_proj.weight", H, VALUES * DV)
        else:
            param(a + "qkv.weight", (2 * HEADS + 2 * GROUPS) * D, H)
            param(a + "q_norm.weight", D)
            param(a + "k_norm.weight", D)
            param(a + "out.weight", H, HEADS * D)
        param(p + "mlp_norm.weight", H)
        param(p + "mlp.router.weight", E, H)
        param(p + "mlp.shared.gate_up.weight", 2 * INNER, H)
        param(p + "mlp.shared.down.weight", H, INNER)
        param(p + "mlp.shared_gate.weight", 1, H)
        for e in range(E):
            param(f"{p}mlp.experts.{e}.gate_up.weight", 2 * INNER, H)
            param(f"{p}mlp.experts.{e}.down.weight", H, INNER)
    param("final_norm.weight", H)
    param("head.weight", V, H)
    return w


def rows_of_heads(rows, count):                        # [count D, H] -> [count, D, H]
    return rows.unflatten(0, (count, -1))


# Our rotation turns element i with i + D / 2 of a head, by the angle i; the first TURNS / 2 of each half turn. Theirs
# turns the first TURNS elements among themselves.
OURS_IN_TURN = [0, 2, 1, 3]                            # the position here of their i-th element, for D = 4 and TURNS = 2


def turned(x):                                         # [B, h, S, D]
    half = D // 2
    pair = torch.stack([x[..., 0], x[..., half]], -1)
    pair = rope(pair, THETA)
    return torch.stack([pair[..., 0], x[..., 1], pair[..., 1], x[..., 3]], -1)


def norm(x, weight):
    return F.rms_norm(x, (x.size(-1),), 1 + weight, EPS)


def delta_net(x, w, p):                                # x [B, S, H]
    widths = [KEYS * DK, KEYS * DK, VALUES * DV, VALUES * DV, VALUES, VALUES]
    q, k, v, z, b, a = F.linear(x, w[p + "in_proj.weight"]).split(widths, -1)
    mixed = torch.cat((q, k, v), -1)
    padded = F.pad(mixed, (0, 0, K - 1, 0))
    mixed = F.silu(sum(padded[:, j:j + S] * w[p + "conv.weight"][:, 0, j] for j in range(K)))
    q, k, v = mixed.split(widths[:3], -1)
    unit = lambda t: t.unflatten(-1, (KEYS, DK)) * torch.rsqrt(
        t.unflatten(-1, (KEYS, DK)).pow(2).sum(-1, keepdim=True) + 1e-6)
    q, k = (unit(t).repeat_interleave(VALUES // KEYS, 2) for t in (q, k))
    v = v.unflatten(-1, (VALUES, DV))
    beta, decay = torch.sigmoid(b), torch.exp(-torch.exp(w[p + "a_log.weight"]) * F.softplus(a + w[p + "dt_bias.weight"]))
    memory, out = torch.zeros(x.size(0), VALUES, DK, DV), []
    for s in range(S):
        memory = memory * decay[:, s, :, None, None]
        held = torch.einsum("bhkv,bhk->bhv", memory, k[:, s])
        memory = memory + torch.einsum("bhk,bhv->bhkv", k[:, s], (v[:, s] - held) * beta[:, s, :, None])
        out.append(torch.einsum("bhkv,bhk->bhv", memory, q[:, s]) / math.sqrt(DK))
    out = torch.stack(out, 1)                          # [B, S, heads, DV]
    out = F.rms_norm(out, (DV,), w[p + "out_norm.weight"], EPS).flatten(2) * F.silu(z)
    return F.linear(out, w[p + "out_proj.weight"])


def attend(x, w, p):
    q, gate, k, v = F.linear(x, w[p + "qkv.weight"]).split([HEADS * D, HEADS * D, GROUPS * D, GROUPS * D], -1)
    q, k, v = (t.unflatten(-1, (-1, D)).transpose(1, 2) for t in (q, k, v))
    q, k = turned(norm(q, w[p + "q_norm.weight"])), turned(norm(k, w[p + "k_norm.weight"]))
    k, v = (t.repeat_interleave(HEADS // GROUPS, 1) for t in (k, v))
    seen = torch.ones(S, S).tril()
    weights = torch.exp(q @ k.transpose(-1, -2) / math.sqrt(D)) * seen
    out = ((weights @ v) / weights.sum(-1, keepdim=True)).transpose(1, 2).flatten(2)
    return F.linear(out * torch.sigmoid(gate), w[p + "out.weight"])


def mlp(x, w, p):
    gate, up = F.linear(x, w[p + "gate_up.weight"]).chunk(2, -1)
    return F.linear(F.silu(gate) * up, w[p + "down.weight"])


def experts(x, w, p):
    best, chosen = torch.softmax(F.linear(x, w[p + "router.weight"]), -1).topk(TOPK, -1)
    best = best / best.sum(-1, keepdim=True)
    routed = sum(mlp(x, w, f"{p}experts.{e}.") * (best * (chosen == e)).sum(-1, keepdim=True) for e in range(E))
    return routed + mlp(x, w, p + "shared.") * torch.sigmoid(F.linear(x, w[p + "shared_gate.weight"]))


def forward(w, tokens):
    x = F.embedding(tokens, w["embedding.weight"])
    for l in range(LAYERS):
        p = f"layers.{l}."
        x = x + (delta_net if is_linear(l) else attend)(norm(x, w[p + "attention_norm.weight"]), w, p + "attention.")
        x = x + experts(norm(x, w[p + "mlp_norm.weight"]), w, p + "mlp.")
    return F.linear(norm(x, w["final_norm.weight"]), w["head.weight"])


def in_their_order(x):                                 # of each head's D rows
    return x.unflatten(0, (-1, D))[:, OURS_IN_TURN].flatten(0, 1)


def their_attention(w, a, b, state):
    q, gate, k, v = w[a + "qkv.weight"].split([HEADS * D, HEADS * D, GROUPS * D, GROUPS * D])
    together = torch.cat((rows_of_heads(in_their_order(q), HEADS), rows_of_heads(gate, HEADS)), 1).flatten(0, 1)
    state[b + "q_proj.weight"], state[b + "k_proj.weight"], state[b + "v_proj.weight"] = together, in_their_order(k), v
    state[b + "q_norm.weight"], state[b + "k_norm.weight"] = (
        w[a + n][OURS_IN_TURN] for n in ("q_norm.weight", "k_norm.weight"))
    state[b + "o_proj.weight"] = w[a + "out.weight"]


def their_delta_net(w, a, b, state):
    parts = w[a + "in_proj.weight"].split([KEYS * DK, KEYS * DK, VALUES * DV, VALUES * DV, VALUES, VALUES])
    by_key_head = lambda some: torch.cat([rows_of_heads(t, KEYS) for t in some], 1).flatten(0, 1)
    state[b + "in_proj_qkvz.weight"], state[b + "in_proj_ba.weight"] = by_key_head(parts[:4]), by_key_head(parts[4:])
    for theirs, ours in (("conv1d.weight", "conv"), ("A_log", "a_log"), ("dt_bias", "dt_bias"), ("norm.weight", "out_norm"),
                         ("out_proj.weight", "out_proj")):
        state[b + theirs] = w[a + ours + ".weight"]


def their_state(w):
    state = {"model.embed_tokens.weight": w["embedding.weight"], "model.norm.weight": w["final_norm.weight"],
             "lm_head.weight": w["head.weight"]}
    for l in range(LAYERS):
        a, b = f"layers.{l}.", f"model.layers.{l}."
        state[b + "input_layernorm.weight"] = w[a + "attention_norm.weight"]
        state[b + "post_attention_layernorm.weight"] = w[a + "mlp_norm.weight"]
        if is_linear(l):
            their_delta_net(w, a + "attention.", b + "linear_attn.", state)
        else:
            their_attention(w, a + "attention.", b + "self_attn.", state)
        m, f = a + "mlp.", b + "mlp."
        state[f + "gate.weight"], state[f + "shared_expert_gate.weight"] = w[m + "router.weight"], w[m + "shared_gate.weight"]
        for name, part in zip(("gate", "up"), w[m + "shared.gate_up.weight"].chunk(2)):
            state[f"{f}shared_expert.{name}_proj.weight"] = part
        state[f + "shared_expert.down_proj.weight"] = w[m + "shared.down.weight"]
        of_all = lambda name: torch.stack([w[f"{m}experts.{e}.{name}.weight"] for e in range(E)])
        state[f + "experts.gate_up_proj"], state[f + "experts.down_proj"] = of_all("gate_up"), of_all("down")
    return state


def transformers_logits(w, tokens):
    model = Qwen3NextForCausalLM(Qwen3NextConfig(
        vocab_size=V, hidden_size=H, intermediate_size=INNER, num_hidden_layers=LAYERS, num_attention_heads=HEADS,
        num_key_value_heads=GROUPS, head_dim=D, num_experts=E, num_experts_per_tok=TOPK, moe_intermediate_size=INNER,
        shared_expert_intermediate_size=INNER, linear_num_key_heads=KEYS, linear_num_value_heads=VALUES,
        linear_key_head_dim=DK, linear_value_head_dim=DV, linear_conv_kernel_dim=K, rms_norm_eps=EPS,
        rope_parameters=dict(rope_type="default", rope_theta=THETA, partial_rotary_factor=TURNS / D),
        max_position_embeddings=16, attn_implementation="eager", experts_implementation="eager", pad_token_id=0)).double().eval()
    return logits_of(model, their_state(w), tokens)


def write_all():
    w = make_weights()
    tokens, targets = batch(V, S, 2)
    write_compared("qwen3_next", w, tokens, targets, forward(w, tokens), transformers_logits(w, tokens))
