"""The Nemotron-H part of make_golden.py: a tiny model in plain torch and fp64, compared with the class of the
transformers package before it is written. Each layer has one mixer: Mamba-2, written as its recurrence position by
position, attention without positions, or an MLP with the square of ReLU."""
import math

import torch
import torch.nn.functional as F
from transformers import NemotronHConfig, NemotronHForCausalLM

from deepseek import logits_of, write_compared
from make_golden import batch, leaf

EPS, PATTERN, V, H, INNER, S = 1e-5, "M*-M", 7, 6, 5, 7
HEADS, GROUPS, D = 4, 2, 3                              # of attention
M_HEADS, M_GROUPS, P, N, K, LEAST = 4, 2, 3, 2, 4, 0.4  # of Mamba-2; its convolution and shortest step
WIDE, GROUP = M_HEADS * P, M_GROUPS * N


def make_weights():
    w = {}

    def param(name, *shape):
        w[name] = leaf(shape, float(len(w)), 0.3, 1.0 if name.endswith("norm.weight") else 0.0)

    param("embedding.weight", V, H)
    for l, letter in enumerate(PATTERN):
        p, a = f"layers.{l}.", f"layers.{l}.attention."
        param(p + ("mlp_norm.weight" if letter == "-" else "attention_norm.weight"), H)
        if letter == "M":
            param(a + "in_proj.weight", 2 * WIDE + 2 * GROUP + M_HEADS, H)
            param(a + "conv.weight", WIDE + 2 * GROUP, 1, K)
            param(a + "conv.bias", WIDE + 2 * GROUP)
            param(a + "a_log.weight", M_HEADS)
            param(a + "dt_bias.weight", M_HEADS)
            param(a + "d.weight", M_HEADS)
            param(a + "out_norm.weight", WIDE)
            param(a + "out_proj.weight", H, WIDE)
        elif letter == "*":
            param(a + "qkv.weight", (HEADS + 2 * GROUPS) * D, H)
            param(a + "out.weight", H, HEADS * D)
        else:
            param(p + "mlp.up.weight", INNER, H)
            param(p + "mlp.down.weight", H, INNER)
    param("final_norm.weight", H)
    param("head.weight", V, H)
    return w


def mamba(x, w, p):                                     # x [B, S, H]
    z, xbc, dt = F.linear(x, w[p + "in_proj.weight"]).split([WIDE, WIDE + 2 * GROUP, M_HEADS], -1)
    padded = F.pad(xbc, (0, 0, K - 1, 0))
    xbc = F.silu(w[p + "conv.bias"] + sum(padded[:, j:j + S] * w[p + "conv.weight"][:, 0, j] for j in range(K)))
    u, b, c = xbc.split([WIDE, GROUP, GROUP], -1)
    u = u.unflatten(-1, (M_HEADS, P))
    b, c = (t.unflatten(-1, (M_GROUPS, N)).repeat_interleave(M_HEADS // M_GROUPS, 2) for t in (b, c))
    step = F.softplus(dt + w[p + "dt_bias.weight"]).clamp(min=LEAST)
    decay = torch.exp(-torch.exp(w[p + "a_log.weight"]) * step)
    state, out = torch.zeros(x.size(0), M_HEADS, P, N), []
    for s in range(S):
        added = torch.einsum("bhp,bhn->bhpn", u[:, s] * step[:, s, :, None], b[:, s])
        state = state * decay[:, s, :, None, None] + added
        out.append(torch.einsum("bhpn,bhn->bhp", state, c[:, s]) + w[p + "d.weight"][:, None] * u[:, s])
    gated = (torch.stack(out, 1).flatten(2) * F.silu(z)).unflatten(-1, (M_GROUPS, -1))
    normed = F.rms_norm(gated, (WIDE // M_GROUPS,), None, EPS).flatten(2) * w[p + "out_norm.weight"]
    return F.linear(normed, w[p + "out_proj.weight"])


def attend(x, w, p):
    q, k, v = F.linear(x, w[p + "qkv.weight"]).split([HEADS * D, GROUPS * D, GROUPS * D], -1)
    q, k, v = (t.unflatten(-1, (-1, D)).transpose(1, 2) for t in (q, k, v))
    k, v = (t.repeat_interleave(HEADS // GROUPS, 1) for t in (k, v))
    weights = torch.exp(q @ k.transpose(-1, -2) / math.sqrt(D)) * torch.ones(S, S).tril()
    out = ((weights @ v) / weights.sum(-1, keepdim=True)).transpose(1, 2).flatten(2)
    return F.linear(out, w[p + "out.weight"])


def mlp(x, w, p):
    return F.linear(F.relu(F.linear(x, w[p + "up.weight"])).square(), w[p + "down.weight"])


def forward(w, tokens):
    x = F.embedding(tokens, w["embedding.weight"])
    norm = lambda x, weight: F.rms_norm(x, (H,), weight, EPS)
    for l, letter in enumerate(PATTERN):
        p = f"layers.{l}."
        if letter == "-":
            x = x + mlp(norm(x, w[p + "mlp_norm.weight"]), w, p + "mlp.")
        else:
            mixer = mamba if letter == "M" else attend
            x = x + mixer(norm(x, w[p + "attention_norm.weight"]), w, p + "attention.")
    return F.linear(norm(x, w["final_norm.weight"]), w["head.weight"])


def their_state(w):
    state = {"model.embeddings.weight": w["embedding.weight"], "model.norm_f.weight": w["final_norm.weight"],
             "lm_head.weight": w["head.weight"]}
    for l, letter in enumerate(PATTERN):
        p, a, b = f"layers.{l}.", f"layers.{l}.attention.", f"model.layers.{l}.mixer."
        state[f"model.layers.{l}.norm.weight"] = w[p + ("mlp_norm.weight" if letter == "-" else "attention_norm.weight")]
        if letter == "M":
            for theirs, ours in (("in_proj.weight", "in_proj.weight"), ("conv1d.weight", "conv.weight"),
                                 ("conv1d.bias", "conv.bias"), ("A_log", "a_log.weight"), ("dt_bias", "dt_bias.weight"),
                                 ("D", "d.weight"), ("norm.weight", "out_norm.weight"), ("out_proj.weight", "out_proj.weight")):
                state[b + theirs] = w[a + ours]
        elif letter == "*":
            for name, part in zip("qkv", w[a + "qkv.weight"].split([HEADS * D, GROUPS * D, GROUPS * D])):
                state[f"{b}{name}_proj.weight"] = part
            state[b + "o_proj.weight"] = w[a + "out.weight"]
        else:
            state[b + "up_proj.weight"], state[b + "down_proj.weight"] = w[p + "mlp.up.weight"], w[p + "mlp.down.weight"]
    return state


def transformers_logits(w, tokens):
    model = NemotronHForCausalLM(NemotronHConfig(
        vocab_size=V, hidden_size=H, intermediate_size=INNER, hybrid_override_pattern=PATTERN, num_attention_heads=HEADS,
        num_key_value_heads=GROUPS, head_dim=D, mamba_num_heads=M_HEADS, mamba_head_dim=P, n_groups=M_GROUPS,
        ssm_state_size=N, conv_kernel=K, time_step_min=LEAST, layer_norm_epsilon=EPS, chunk_size=4,
        max_position_embeddings=16, attn_implementation="eager", pad_token_id=0)).double().eval()
    return logits_of(model, their_state(w), tokens)


def write_all():
    w = make_weights()
    tokens, targets = batch(V, S, 2)
    write_compared("nemotron_h", w, tokens, targets, forward(w, tokens), transformers_logits(w, tokens))
