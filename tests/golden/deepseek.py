"""The DeepSeek-V3 part of make_golden.py: YaRN tables, the router, and a tiny model with latent attention, one layer of
experts and one module of multi-token prediction, in plain torch and fp64. Each is compared with the classes of the
transformers package before it is written (without MTP, which these leave out)."""
import math

import torch
import torch.nn.functional as F
from transformers import DeepseekV3Config
from transformers.models.deepseek_v3 import modeling_deepseek_v3 as hf

from make_golden import Golden, leaf, rope, wave, write_model

V3 = dict(dim=64, theta=10000.0, factor=40.0, original=4096)
TINY = dict(dim=4, theta=50.0, factor=3.0, original=16)
# beta_slow 0.2: of so few pairs one is mixed.
BETA = {64: (32, 1), 4: (32, 0.2)}


def yarn_frequencies(dim, theta, factor, original):
    fast, slow = BETA[dim]

    def pair(rotations):
        return dim * math.log(original / (rotations * 2 * math.pi)) / (2 * math.log(theta))

    low, high = max(math.floor(pair(fast)), 0), min(math.ceil(pair(slow)), dim - 1)
    ramp = ((torch.arange(dim // 2).double() - low) / max(high - low, 0.001)).clamp(0, 1)
    plain = theta ** (-torch.arange(0, dim, 2, dtype=torch.float64) / dim)
    return plain / factor * ramp + plain * (1 - ramp)


def mscale(factor):
    return 0.1 * math.log(factor) + 1 if factor > 1 else 1.0


def rope_parameters(dim, theta, factor, original):
    return {"rope_type": "yarn", "rope_theta": theta, "factor": factor, "original_max_position_embeddings": original,
            "beta_fast": BETA[dim][0], "beta_slow": BETA[dim][1], "mscale": 1.0, "mscale_all_dim": 1.0}


def close(what, a, b, tolerance=2e-5):
    error = ((a - b).abs().max() / b.abs().max()).item()
    print(f"{what}: relative difference to transformers {error:.1e}")
    assert error < tolerance, what


def logits_of(model, state, tokens):
    missing, unexpected = model.load_state_dict(state, strict=False)
    assert not missing and not unexpected, (missing, unexpected)
    return model(tokens).logits


def write_compared(name, w, tokens, targets, logits, their_logits):
    """The golden file of a model whose logits are those of transformers."""
    close(name, their_logits, logits)
    loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-100, reduction="sum")
    loss.backward()
    write_model(f"{name}_model.txt", w, tokens=tokens, targets=targets, loss=loss.reshape(1), logits=logits)


def yarn():
    g = Golden("yarn.txt")
    for name, numbers in (("v3", V3), ("tiny", TINY)):
        frequencies = yarn_frequencies(**numbers)
        config = DeepseekV3Config(qk_rope_head_dim=numbers["dim"], rope_parameters=rope_parameters(**numbers),
                                  max_position_embeddings=int(numbers["factor"] * numbers["original"]))
        published, attention_factor = hf.ROPE_INIT_FUNCTIONS["yarn"](config)
        close(f"yarn {name}", published.double(), frequencies)
        assert attention_factor == 1.0
        g.add(f"{name}.frequencies", frequencies)
        g.add(f"{name}.mscale", torch.tensor([mscale(numbers["factor"])]))
    g.write()


def choose(scores, bias, groups, group_topk, k, scale):    # dense weights [T, E]
    T, E = scores.shape
    choice = (scores + bias).detach()
    best = choice.view(T, groups, E // groups).topk(2, -1)[0].sum(-1)
    allowed = torch.zeros(T, groups).scatter_(1, best.topk(group_topk, -1)[1], 1).bool()
    choice = choice.masked_fill(~allowed.repeat_interleave(E // groups, 1), -math.inf)
    chosen = torch.zeros(T, E).scatter_(1, choice.topk(k, -1)[1], 1)
    weights = scores * chosen
    return weights / (weights.sum(-1, keepdim=True) + 1e-20) * scale


def router():
    T, E, H, groups, group_topk, k, scale = 12, 16, 6, 4, 2, 3, 2.5
    x, w = wave((T, H), 0.3, 2.0), wave((E, H), 0.8)
    bias = wave((E,), 0.4, 0.3)
    logits = F.linear(x, w).requires_grad_(True)
    weights = choose(logits.sigmoid(), bias, groups, group_topk, k, scale)
    theirs = hf.DeepseekV3TopkRouter(DeepseekV3Config(hidden_size=H, n_routed_experts=E, num_experts_per_tok=k,
                                                      n_group=groups, topk_group=group_topk, norm_topk_prob=True,
                                                      routed_scaling_factor=scale))
    theirs.weight.data.copy_(w)
    theirs.e_score_correction_bias.copy_(bias)
    _, their_weights, their_experts = theirs(x)
    dense = torch.zeros(T, E, dtype=their_weights.dtype).scatter_(1, their_experts, their_weights)
    close("router", dense.double(), weights)
    assert torch.equal(dense != 0, weights != 0)
    weights.backward(wave((T, E), 0.9))
    g = Golden("router.txt")
    g.add("logits", logits)
    g.add("bias", bias)
    g.add("weights", weights)
    g.add("dlogits", logits.grad)
    g.write()


# Latent attention on [B, S, H]. Rotation in halves, as in core/.
def latent_attention(x, w, p, c):
    B, S, _ = x.shape
    if c["q_lora"]:
        q = F.linear(F.rms_norm(F.linear(x, w[p + "q_down.weight"]), (c["q_lora"],), w[p + "q_norm.weight"], 1e-6),
                     w[p + "q_up.weight"])
    else:
        q = F.linear(x, w[p + "q.weight"])
    q_nope, q_rope = q.view(B, S, c["heads"], -1).transpose(1, 2).split([c["nope"], c["rope"]], -1)
    latent, k_rope = F.linear(x, w[p + "kv_down.weight"]).split([c["kv_lora"], c["rope"]], -1)
    kv = F.linear(F.rms_norm(latent, (c["kv_lora"],), w[p + "kv_norm.weight"], 1e-6), w[p + "kv_up.weight"])
    k_nope, v = kv.view(B, S, c["heads"], -1).transpose(1, 2).split([c["nope"], c["v"]], -1)
    angle = torch.outer(torch.arange(S, dtype=torch.float64), yarn_frequencies(**TINY))
    turn = torch.polar(torch.ones_like(angle), angle)

    def turned(t):
        z = torch.complex(t[..., : c["rope"] // 2], t[..., c["rope"] // 2:]) * turn
        return torch.cat((z.real, z.imag), -1)

    k = torch.cat((k_nope, turned(k_rope).unsqueeze(1).expand(B, c["heads"], S, c["rope"])), -1)
    q = torch.cat((q_nope, turned(q_rope)), -1)
    scores = q @ k.transpose(-1, -2) * (mscale(TINY["factor"]) ** 2 / math.sqrt(c["nope"] + c["rope"]))
    scores = scores.masked_fill(torch.ones(S, S, dtype=torch.bool).triu(1), -math.inf)
    out = (F.softmax(scores, -1) @ v).transpose(1, 2).reshape(B, S, -1)
    return F.linear(out, w[p + "out.weight"])


def swiglu(x, w, p):
    gate, up = F.linear(x, w[p + "gate_up.weight"]).chunk(2, -1)
    return F.linear(F.silu(gate) * up, w[p + "down.weight"])


def experts(x, w, p, c):
    flat = x.reshape(-1, x.shape[-1])
    scores = F.linear(flat, w[p + "router.weight"]).sigmoid()
    weights = choose(scores, torch.zeros(c["E"]), c["groups"], c["group_topk"], c["k"], c["scale"])
    y = swiglu(flat, w, p + "shared.")
    for e in range(c["E"]):
        y = y + weights[:, e: e + 1] * swiglu(flat, w, f"{p}experts.{e}.")
    return y.view_as(x)


def block(x, w, p, c, is_moe):
    H = x.shape[-1]
    x = x + latent_attention(F.rms_norm(x, (H,), w[p + "attention_norm.weight"], 1e-6), w, p + "attention.", c)
    h = F.rms_norm(x, (H,), w[p + "mlp_norm.weight"], 1e-6)
    return x + (experts(h, w, p + "mlp.", c) if is_moe else swiglu(h, w, p + "mlp."))


def make_weights(c):
    w = {}

    def param(name, *shape):
        w[name] = leaf(shape, float(len(w)), 0.3, 1.0 if name.endswith("norm.weight") else 0.0)

    def mlp(p, ffn):
        param(p + "gate_up.weight", 2 * ffn, c["H"])
        param(p + "down.weight", c["H"], ffn)

    def layer(p, is_moe):
        param(p + "attention_norm.weight", c["H"])
        a, head = p + "attention.", c["nope"] + c["rope"]
        if c["q_lora"]:
            param(a + "q_down.weight", c["q_lora"], c["H"])
            param(a + "q_norm.weight", c["q_lora"])
            param(a + "q_up.weight", c["heads"] * head, c["q_lora"])
        else:
            param(a + "q.weight", c["heads"] * head, c["H"])
        param(a + "kv_down.weight", c["kv_lora"] + c["rope"], c["H"])
        param(a + "kv_norm.weight", c["kv_lora"])
        param(a + "kv_up.weight", c["heads"] * (c["nope"] + c["v"]), c["kv_lora"])
        param(a + "out.weight", c["H"], c["heads"] * c["v"])
        param(p + "mlp_norm.weight", c["H"])
        if not is_moe:
            return mlp(p + "mlp.", c["ffn"])
        param(p + "mlp.router.weight", c["E"], c["H"])
        mlp(p + "mlp.shared.", c["moe_ffn"])
        for e in range(c["E"]):
            mlp(f"{p}mlp.experts.{e}.", c["moe_ffn"])

    param("embedding.weight", c["V"], c["H"])
    layer("layers.0.", False)
    layer("layers.1.", c["E"] > 0)
    param("final_norm.weight", c["H"])
    param("head.weight", c["V"], c["H"])
    for n in ("enorm", "hnorm"):
        param(f"mtp.0.{n}.weight", c["H"])
    param("mtp.0.proj.weight", c["H"], 2 * c["H"])
    layer("mtp.0.block.", c["E"] > 0)
    param("mtp.0.norm.weight", c["H"])
    return w


# Row 2i of theirs is row i of ours, row 2i + 1 row i + rope / 2: they turn neighbours, core/ turns halves.
def their_rows(rows, c, heads):
    rows = rows.view(heads, -1, rows.shape[-1])
    nope, r = rows.split([rows.shape[1] - c["rope"], c["rope"]], 1)
    return torch.cat((nope, torch.stack(r.chunk(2, 1), 2).flatten(1, 2)), 1).flatten(0, 1)


def transformers_logits(w, c, tokens):
    config = DeepseekV3Config(
        vocab_size=c["V"], hidden_size=c["H"], intermediate_size=c["ffn"], moe_intermediate_size=c["moe_ffn"],
        num_hidden_layers=2, num_attention_heads=c["heads"], num_key_value_heads=c["heads"], n_shared_experts=1,
        n_routed_experts=max(c["E"], 2), routed_scaling_factor=c["scale"], kv_lora_rank=c["kv_lora"],
        q_lora_rank=c["q_lora"] or None, qk_rope_head_dim=c["rope"], v_head_dim=c["v"], qk_nope_head_dim=c["nope"],
        n_group=c["groups"], topk_group=c["group_topk"], num_experts_per_tok=c["k"],
        first_k_dense_replace=1 if c["E"] else 2, norm_topk_prob=True, rms_norm_eps=1e-6,
        rope_parameters=rope_parameters(**TINY), attn_implementation="eager", experts_implementation="eager",
        max_position_embeddings=48)
    model = hf.DeepseekV3ForCausalLM(config).double().eval()
    state = {"model.embed_tokens.weight": w["embedding.weight"], "model.norm.weight": w["final_norm.weight"],
             "lm_head.weight": w["head.weight"]}
    for l in range(2):
        a, b = f"layers.{l}.", f"model.layers.{l}."
        state[b + "input_layernorm.weight"] = w[a + "attention_norm.weight"]
        state[b + "post_attention_layernorm.weight"] = w[a + "mlp_norm.weight"]
        a, b = a + "attention.", b + "self_attn."
        if c["q_lora"]:
            state[b + "q_a_proj.weight"] = w[a + "q_down.weight"]
            state[b + "q_a_layernorm.weight"] = w[a + "q_norm.weight"]
            state[b + "q_b_proj.weight"] = their_rows(w[a + "q_up.weight"], c, c["heads"])
        else:
            state[b + "q_proj.weight"] = their_rows(w[a + "q.weight"], c, c["heads"])
        state[b + "kv_a_proj_with_mqa.weight"] = their_rows(w[a + "kv_down.weight"], c, 1)
        state[b + "kv_a_layernorm.weight"] = w[a + "kv_norm.weight"]
        state[b + "kv_b_proj.weight"] = w[a + "kv_up.weight"]
        state[b + "o_proj.weight"] = w[a + "out.weight"]
        a, b = f"layers.{l}.mlp.", f"model.layers.{l}.mlp."
        is_moe = c["E"] > 0 and l == 1
        if is_moe:
            state[b + "gate.weight"] = w[a + "router.weight"]
            state[b + "experts.gate_up_proj"] = torch.stack(
                [w[f"{a}experts.{e}.gate_up.weight"] for e in range(c["E"])])
            state[b + "experts.down_proj"] = torch.stack([w[f"{a}experts.{e}.down.weight"] for e in range(c["E"])])
        gate, up = w[a + ("shared." if is_moe else "") + "gate_up.weight"].chunk(2)
        b += "shared_experts." if is_moe else ""
        state[b + "gate_proj.weight"], state[b + "up_proj.weight"] = gate, up
        state[b + "down_proj.weight"] = w[a + ("shared." if is_moe else "") + "down.weight"]
    missing, unexpected = model.load_state_dict(state, strict=False)
    assert not unexpected and all("e_score_correction_bias" in m for m in missing), (missing, unexpected)
    return model(tokens).logits


def model(file, **c):
    w = make_weights(c)
    V, S, B = c["V"], 6, 2
    tokens = torch.tensor([[(3 * b + 2 * s) % V for s in range(S)] for b in range(B)])
    targets = torch.tensor([[(3 * b + 2 * (s + 1)) % V for s in range(S)] for b in range(B)])
    targets[1, 2] = -100
    x = F.embedding(tokens, w["embedding.weight"])
    x = block(x, w, "layers.0.", c, False)
    x = block(x, w, "layers.1.", c, c["E"] > 0)
    h = F.rms_norm(x, (c["H"],), w["final_norm.weight"], 1e-6)
    logits = F.linear(h, w["head.weight"])
    close(file, transformers_logits(w, c, tokens), logits)

    def loss_of(logits, targets):
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-100, reduction="sum")

    # Position i predicts token i + 2 from the main model's state at i and the embedding of token i + 1.
    next_tokens = torch.cat((tokens[:, 1:], torch.zeros(B, 1, dtype=torch.long)), 1)
    next_targets = torch.cat((targets[:, 1:], torch.full((B, 1), -100)), 1)
    both = torch.cat((F.rms_norm(F.embedding(next_tokens, w["embedding.weight"]), (c["H"],), w["mtp.0.enorm.weight"], 1e-6),
                      F.rms_norm(h, (c["H"],), w["mtp.0.hnorm.weight"], 1e-6)), -1)
    y = block(F.linear(both, w["mtp.0.proj.weight"]), w, "mtp.0.block.", c, c["E"] > 0)
    y = F.rms_norm(y, (c["H"],), w["mtp.0.norm.weight"], 1e-6)
    loss, mtp_loss = loss_of(logits, targets), loss_of(F.linear(y, w["head.weight"]), next_targets)
    (loss + c["mtp_weight"] * mtp_loss).backward()
    write_model(file, w, tokens=tokens, targets=targets, loss=loss.reshape(1), mtp_loss=mtp_loss.reshape(1),
                logits=logits)


def write_all():
    yarn()
    router()
    sizes = dict(H=6, V=7, heads=2, kv_lora=5, nope=3, rope=4, v=2, ffn=5, moe_ffn=3, groups=2, group_topk=1, k=2,
                 scale=2.5, mtp_weight=0.3)
    model("deepseek_model.txt", q_lora=4, E=6, **sizes)
    model("latent_model.txt", q_lora=0, E=0, **{**sizes, "v": 8})
