"""The Llama 4 part of make_golden.py: a tiny model in plain torch and fp64, compared with the class of the transformers
package before it is written. Of four layers two have rotary positions, a norm without weights of queries and keys, and
chunks; the others have no positions and queries that grow with theirs; each other layer has experts, of which a token's
one reads the token times its weight, beside a shared one."""
import math

import torch
import torch.nn.functional as F
from transformers import Llama4ForCausalLM, Llama4TextConfig

from deepseek import logits_of, write_compared
from make_golden import batch, leaf, rope

EPS, THETA, LAYERS, V, H, FFN, INNER, S, CHUNK = 1e-6, 50.0, 4, 7, 6, 5, 3, 7, 3
HEADS, GROUPS, D, E = 4, 2, 4, 5
SCALE, FLOOR = 0.5, 2


def rotates(layer):
    return layer % 2 == 0


def has_experts(layer):
    return layer % 2 == 1


def make_weights():
    w = {}

    def param(name, *shape):
        w[name] = leaf(shape, float(len(w)), 0.3, 1.0 if name.endswith("norm.weight") else 0.0)

    param("embedding.weight", V, H)
    for l in range(LAYERS):
        p = f"layers.{l}."
        param(p + "attention_norm.weight", H)
        param(p + "attention.qkv.weight", (HEADS + 2 * GROUPS) * D, H)
        param(p + "attention.out.weight", H, HEADS * D)
        param(p + "mlp_norm.weight", H)
        if has_experts(l):
            param(p + "mlp.router.weight", E, H)
            for name in ["shared"] + [f"experts.{e}" for e in range(E)]:
                param(f"{p}mlp.{name}.gate_up.weight", 2 * INNER, H)
                param(f"{p}mlp.{name}.down.weight", H, INNER)
        else:
            param(p + "mlp.gate_up.weight", 2 * FFN, H)
            param(p + "mlp.down.weight", H, FFN)
    param("final_norm.weight", H)
    param("head.weight", V, H)
    return w


def attend(x, w, p, layer):                            # x [B, S, H]
    q, k, v = F.linear(x, w[p + "qkv.weight"]).split([HEADS * D, GROUPS * D, GROUPS * D], -1)
    q, k, v = (t.unflatten(-1, (-1, D)).transpose(1, 2) for t in (q, k, v))
    position = torch.arange(S, dtype=torch.float64)
    seen = position.unsqueeze(1) >= position
    if rotates(layer):
        q, k = (F.rms_norm(rope(t, THETA), (D,), None, EPS) for t in (q, k))
        seen = seen & ((position // CHUNK).unsqueeze(1) == position // CHUNK)
    else:
        q = q * (1 + SCALE * torch.log(1 + (position + 1) // FLOOR)).view(-1, 1)
    k, v = (t.repeat_interleave(HEADS // GROUPS, 1) for t in (k, v))
    weights = torch.exp(q @ k.transpose(-1, -2) / math.sqrt(D)) * seen
    out = (weights @ v) / weights.sum(-1, keepdim=True)
    return F.linear(out.transpose(1, 2).flatten(2), w[p + "out.weight"])


def mlp(x, w, p):
    gate, up = F.linear(x, w[p + "gate_up.weight"]).chunk(2, -1)
    return F.linear(F.silu(gate) * up, w[p + "down.weight"])


def experts(x, w, p):
    logits = F.linear(x, w[p + "router.weight"])
    best, chosen = logits.max(-1, keepdim=True)
    read = x * torch.sigmoid(best)
    return mlp(x, w, p + "shared.") + sum(mlp(read, w, f"{p}experts.{e}.") * (chosen == e) for e in range(E))


def forward(w, tokens):
    norm = lambda x, name: F.rms_norm(x, (H,), w[name + ".weight"], EPS)
    x = F.embedding(tokens, w["embedding.weight"])
    for l in range(LAYERS):
        p = f"layers.{l}."
        x = x + attend(norm(x, p + "attention_norm"), w, p + "attention.", l)
        x = x + (experts if has_experts(l) else mlp)(norm(x, p + "mlp_norm"), w, p + "mlp.")
    return F.linear(norm(x, "final_norm"), w["head.weight"])


def neighbours(rows):                                  # of each head: its halves one by one
    return rows.unflatten(0, (-1, 2, D // 2)).transpose(1, 2).flatten(0, 2)


def their_state(w):
    state = {"model.embed_tokens.weight": w["embedding.weight"], "model.norm.weight": w["final_norm.weight"],
             "lm_head.weight": w["head.weight"]}
    for l in range(LAYERS):
        a, b = f"layers.{l}.", f"model.layers.{l}."
        state[b + "input_layernorm.weight"] = w[a + "attention_norm.weight"]
        state[b + "post_attention_layernorm.weight"] = w[a + "mlp_norm.weight"]
        q, k, v = w[a + "attention.qkv.weight"].split([HEADS * D, GROUPS * D, GROUPS * D])
        state[b + "self_attn.q_proj.weight"], state[b + "self_attn.k_proj.weight"] = neighbours(q), neighbours(k)
        state[b + "self_attn.v_proj.weight"], state[b + "self_attn.o_proj.weight"] = v, w[a + "attention.out.weight"]
        f = b + "feed_forward."
        dense = (f, a + "mlp.") if not has_experts(l) else (f + "shared_expert.", a + "mlp.shared.")
        for name, part in zip(("gate", "up"), w[dense[1] + "gate_up.weight"].chunk(2)):
            state[f"{dense[0]}{name}_proj.weight"] = part
        state[dense[0] + "down_proj.weight"] = w[dense[1] + "down.weight"]
        if has_experts(l):
            of_all = lambda name: torch.stack([w[f"{a}mlp.experts.{e}.{name}.weight"].t() for e in range(E)])
            state[f + "router.weight"] = w[a + "mlp.router.weight"]
            state[f + "experts.gate_up_proj"], state[f + "experts.down_proj"] = of_all("gate_up"), of_all("down")
    return state


def transformers_logits(w, tokens):
    model = Llama4ForCausalLM(Llama4TextConfig(
        vocab_size=V, hidden_size=H, intermediate_size=INNER, intermediate_size_mlp=FFN, num_hidden_layers=LAYERS,
        num_attention_heads=HEADS, num_key_value_heads=GROUPS, head_dim=D, num_local_experts=E,
        moe_layers=[l for l in range(LAYERS) if has_experts(l)], no_rope_layers=[int(rotates(l)) for l in range(LAYERS)],
        attention_chunk_size=CHUNK, attn_scale=SCALE, floor_scale=FLOOR, rms_norm_eps=EPS,
        rope_parameters=dict(rope_type="default", rope_theta=THETA), max_position_embeddings=16,
        attn_implementation="eager", pad_token_id=0, bos_token_id=0, eos_token_id=0)).double().eval()
    return logits_of(model, their_state(w), tokens)


def write_all():
    w = make_weights()
    tokens, targets = batch(V, S, 2)
    write_compared("llama4", w, tokens, targets, forward(w, tokens), transformers_logits(w, tokens))
