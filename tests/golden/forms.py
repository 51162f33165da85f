"""The part of make_golden.py for the other forms of a block: tiny models in plain torch and fp64, each compared with the
classes of the transformers package before it is written. OLMo 2: norms behind branches, and of all heads of a token.
Gemma 2 and 3: norms on both sides that multiply with 1 + their weight, GeGLU, scaled embeddings, bounded scores and
logits, a window and a rotary base of its own in the first of two layers. GPT-NeoX and Phi: both branches of the same
input, through two norms and through one, GELU of either kind, biases. SmolLM 3: a layer without positions. Nemotron:
LayerNorms that multiply with 1 + their weight, the square of ReLU. Granite: embeddings, branches, scores and logits are
multiplied. Cohere 2: one LayerNorm without a bias for both branches, rotated elements side by side, a window and
positions in the first of two layers alone."""
import math

import torch
import torch.nn.functional as F
import transformers

from deepseek import close
from make_golden import batch, leaf, rope, write_model

EPS, THETA, LOCAL_THETA, LAYERS, V, H, FFN, S = 1e-6, 50.0, 9.0, 2, 7, 8, 5, 6
RMS = dict(norm="rms", placement="before", residual="sequential", mlp="swiglu", bias=False, offset=0.0)
LAYER_NORM = dict(norm="layer", placement="before", offset=0.0, bias=True, heads=2, groups=2, D=4, tied=False)
GEMMA = dict(RMS, placement="both", mlp="geglu", offset=1.0, heads=2, groups=1, D=6, tied=True, scaled=True, window=3)
SMALL = dict(RMS, heads=4, groups=2, D=2, tied=False)
MODELS = {
    "smollm3": dict(SMALL, unturned=1),
    "nemotron": dict(SMALL, norm="layer", offset=1.0, mlp="relu2"),
    "olmo2": dict(RMS, placement="behind", heads=4, groups=2, D=2, tied=False, qk="all"),
    "gemma2": dict(GEMMA, divisor=9, score_cap=0.8, logit_cap=1.5),
    "gemma3": dict(GEMMA, qk="head", local=True),
    "gpt_neox": dict(LAYER_NORM, residual="parallel", mlp="erf"),
    "phi2": dict(LAYER_NORM, residual="one_norm", mlp="tanh", head_bias=True),
    "granite": dict(SMALL, embedding=3.0, branch=0.4, divisor=9, logit=0.5),
    "cohere2": dict(LAYER_NORM, residual="one_norm", mlp="swiglu", bias=False, norm_bias=False, groups=1, tied=True,
                    logit=0.25, adjacent=True, window=3, unturned=1),
}


def make_weights(c):
    w = {}

    def param(name, *shape):
        w[name] = leaf(shape, float(len(w)), 0.3, 1.0 if name.endswith("norm.weight") else 0.0)

    def linear(name, out, inp):
        param(name + ".weight", out, inp)
        if c["bias"]:
            param(name + ".bias", out)

    def norm(name, wanted=True):
        if wanted:
            param(name + ".weight", H)
        if wanted and c["norm"] == "layer" and c.get("norm_bias", True):
            param(name + ".bias", H)

    q, kv = c["heads"] * c["D"], c["groups"] * c["D"]
    before, behind = c["placement"] != "behind", c["placement"] != "before"
    param("embedding.weight", V, H)
    for l in range(LAYERS):
        p = f"layers.{l}."
        norm(p + "attention_norm", before)
        linear(p + "attention.qkv", q + 2 * kv, H)
        if "qk" in c:
            param(p + "attention.q_norm.weight", q if c["qk"] == "all" else c["D"])
            param(p + "attention.k_norm.weight", kv if c["qk"] == "all" else c["D"])
        linear(p + "attention.out", H, q)
        norm(p + "attention_post_norm", behind)
        norm(p + "mlp_norm", before and c["residual"] != "one_norm")
        gated = "glu" in c["mlp"]
        linear(p + ("mlp.gate_up" if gated else "mlp.up"), (1 + gated) * FFN, H)
        linear(p + "mlp.down", H, FFN)
        norm(p + "mlp_post_norm", behind)
    norm("final_norm")
    if not c["tied"]:
        param("head.weight", V, H)
    if "head_bias" in c:
        param("head.bias", V)
    return w


def normed(x, w, name, c):
    if name + ".weight" not in w:
        return x
    if c["norm"] == "layer":
        return F.layer_norm(x, (H,), c["offset"] + w[name + ".weight"], w.get(name + ".bias"), EPS)
    return x / (x.square().mean(-1, keepdim=True) + EPS).sqrt() * (c["offset"] + w[name + ".weight"])


def linear(x, w, name):
    return F.linear(x, w[name + ".weight"], w.get(name + ".bias"))


def attend(x, w, p, c, near, turned):                  # x [B, S, H]
    D = c["D"]
    q, k, v = linear(x, w, p + "qkv").split([c["heads"] * D, c["groups"] * D, c["groups"] * D], -1)
    if c.get("qk") == "all":
        q, k = normed(q, w, p + "q_norm", c), normed(k, w, p + "k_norm", c)
    q, k, v = (t.unflatten(-1, (-1, D)).transpose(1, 2) for t in (q, k, v))
    if c.get("qk") == "head":
        q, k = normed(q, w, p + "q_norm", c), normed(k, w, p + "k_norm", c)
    if "adjacent" in c:
        q, k = (t.unflatten(-1, (-1, 2)).transpose(-1, -2).flatten(-2) for t in (q, k))
    theta = LOCAL_THETA if near and "local" in c else THETA
    if turned:
        q, k = rope(q, theta), rope(k, theta)
    k, v = (t.repeat_interleave(c["heads"] // c["groups"], 1) for t in (k, v))
    scores = q @ k.transpose(-1, -2) / math.sqrt(c.get("divisor", D))
    if "score_cap" in c:
        scores = c["score_cap"] * torch.tanh(scores / c["score_cap"])
    behind = torch.arange(S).unsqueeze(1) - torch.arange(S)
    seen = (behind >= 0) & (behind < (c["window"] if near else S))
    weights = F.softmax(scores.masked_fill(~seen, -math.inf), -1)
    return linear((weights @ v).transpose(1, 2).flatten(2), w, p + "out")


def mlp(x, w, p, c):
    if c["mlp"] == "relu2":
        return linear(F.relu(linear(x, w, p + "up")).square(), w, p + "down")
    if "glu" not in c["mlp"]:
        kind = "tanh" if c["mlp"] == "tanh" else "none"
        return linear(F.gelu(linear(x, w, p + "up"), approximate=kind), w, p + "down")
    gate, up = linear(x, w, p + "gate_up").chunk(2, -1)
    gate = F.silu(gate) if c["mlp"] == "swiglu" else F.gelu(gate, approximate="tanh")
    return linear(gate * up, w, p + "down")


def block(x, w, p, c, near, turned):
    h = normed(x, w, p + "attention_norm", c)
    factor = c.get("branch", 1)
    a = factor * normed(attend(h, w, p + "attention.", c, near, turned), w, p + "attention_post_norm", c)
    if c["residual"] == "sequential":
        x, a = x + a, 0
    if c["residual"] != "one_norm":
        h = normed(x, w, p + "mlp_norm", c)
    return x + a + factor * normed(mlp(h, w, p + "mlp.", c), w, p + "mlp_post_norm", c)


def forward(w, c, tokens):
    x = F.embedding(tokens, w["embedding.weight"]) * (math.sqrt(H) if "scaled" in c else c.get("embedding", 1))
    for l in range(LAYERS):
        x = block(x, w, f"layers.{l}.", c, "window" in c and l == 0, c.get("unturned") != l)
    head = w["embedding.weight" if c["tied"] else "head.weight"]
    logits = F.linear(normed(x, w, "final_norm", c), head, w.get("head.bias")) * c.get("logit", 1)
    return c["logit_cap"] * torch.tanh(logits / c["logit_cap"]) if "logit_cap" in c else logits


def their_class(name, c):
    common = dict(vocab_size=V, hidden_size=H, intermediate_size=FFN, num_hidden_layers=LAYERS,
                  num_attention_heads=c["heads"], attn_implementation="eager", max_position_embeddings=16,
                  tie_word_embeddings=c["tied"], pad_token_id=0, bos_token_id=0, eos_token_id=0)
    plain = dict(rope_type="default", rope_theta=THETA)
    near = dict(head_dim=c["D"], sliding_window=c.get("window"), layer_types=["sliding_attention", "full_attention"],
                query_pre_attn_scalar=c.get("divisor", c["D"]))
    if name == "gpt_neox":
        return "GPTNeoX", "GPTNeoX", dict(common, layer_norm_eps=EPS, rope_parameters=dict(plain, partial_rotary_factor=1.0))
    if name == "phi2":
        return "Phi", "Phi", dict(common, layer_norm_eps=EPS, rope_parameters=dict(plain, partial_rotary_factor=1.0))
    if name == "nemotron":
        return "Nemotron", "Nemotron", dict(common, num_key_value_heads=c["groups"], norm_eps=EPS,
                                            rope_parameters=dict(plain, partial_rotary_factor=1.0))
    if name == "cohere2":
        return "Cohere2", "Cohere2", dict(common, num_key_value_heads=c["groups"], layer_norm_eps=EPS,
                                          rope_parameters=plain, logit_scale=c["logit"], sliding_window=c["window"],
                                          layer_types=near["layer_types"])
    common.update(num_key_value_heads=c["groups"], rms_norm_eps=EPS, rope_parameters=plain)
    if name == "smollm3":
        return "SmolLM3", "SmolLM3", dict(common, no_rope_layers=[int(l != c["unturned"]) for l in range(LAYERS)])
    if name == "granite":
        return "Granite", "Granite", dict(common, embedding_multiplier=c["embedding"], residual_multiplier=c["branch"],
                                          attention_multiplier=c["divisor"] ** -0.5, logits_scaling=1 / c["logit"])
    if name == "olmo2":
        return "Olmo2", "Olmo2", common
    if name == "gemma2":
        return "Gemma2", "Gemma2", dict(common, **near, attn_logit_softcapping=c["score_cap"],
                                        final_logit_softcapping=c["logit_cap"])
    two = dict(full_attention=plain, sliding_attention=dict(plain, rope_theta=LOCAL_THETA))
    return "Gemma3Text", "Gemma3", dict(common, **near) | dict(rope_parameters=two)


NEOX = {"attention.out": "attention.dense", "mlp.up": "mlp.dense_h_to_4h", "mlp.down": "mlp.dense_4h_to_h",
        "attention_norm": "input_layernorm", "mlp_norm": "post_attention_layernorm"}
PHI = {"attention.out": "self_attn.dense", "mlp.up": "mlp.fc1", "mlp.down": "mlp.fc2",
       "attention_norm": "input_layernorm"}
LLAMA = {"attention.out": "self_attn.o_proj", "mlp.up": "mlp.up_proj", "mlp.down": "mlp.down_proj",
         "attention_norm": "input_layernorm", "mlp_norm": "post_attention_layernorm"}
OTHERS = {"attention.out": "self_attn.o_proj", "mlp.down": "mlp.down_proj", "attention_norm": "input_layernorm",
          "attention_post_norm": "post_attention_layernorm", "mlp_norm": "pre_feedforward_layernorm",
          "mlp_post_norm": "post_feedforward_layernorm", "attention.q_norm": "self_attn.q_norm",
          "attention.k_norm": "self_attn.k_norm"}


def their_state(name, c, w):
    neox = name == "gpt_neox"
    names = NEOX if neox else PHI if name == "phi2" else LLAMA if name in ("smollm3", "nemotron", "granite", "cohere2") else OTHERS
    base = "gpt_neox." if neox else "model."
    last = base + ("final_layer_norm" if neox else "final_layernorm" if name == "phi2" else "norm")
    state = {base + ("embed_in" if neox else "embed_tokens") + ".weight": w["embedding.weight"],
             "lm_head.weight": w["embedding.weight" if c["tied"] else "head.weight"]}
    for ours, tensor in w.items():
        stem, kind = ours.rsplit(".", 1)
        if stem == "final_norm":
            state[f"{last}.{kind}"] = tensor
        if ours == "head.bias":
            state["lm_head.bias"] = tensor
        if not ours.startswith("layers."):
            continue
        _, l, module = stem.split(".", 2)
        theirs = f"{base}layers.{l}."
        if module == "attention.qkv":
            parts = tensor.split([c["heads"] * c["D"], c["groups"] * c["D"], c["groups"] * c["D"]])
            if neox:                                   # of each head its query, key and value
                heads = torch.stack([part.unflatten(0, (c["heads"], c["D"])) for part in parts], 1)
                state[f"{theirs}attention.query_key_value.{kind}"] = heads.flatten(0, 2)
                continue
            for letter, part in zip("qkv", parts):
                state[f"{theirs}self_attn.{letter}_proj.{kind}"] = part
        elif module == "mlp.gate_up":
            state[f"{theirs}mlp.gate_proj.{kind}"], state[f"{theirs}mlp.up_proj.{kind}"] = tensor.chunk(2)
        else:
            state[f"{theirs}{names[module]}.{kind}"] = tensor
    return state


def transformers_logits(name, c, w, tokens):
    config, family, numbers = their_class(name, c)
    model = getattr(transformers, family + "ForCausalLM")(getattr(transformers, config + "Config")(**numbers))
    model = model.double().eval()
    missing, unexpected = model.load_state_dict(their_state(name, c, w), strict=False)
    assert not missing and not unexpected, (missing, unexpected)
    return model(tokens).logits


def write_all():
    for name, c in MODELS.items():
        w = make_weights(c)
        tokens, targets = batch(V, S, 2)
        logits = forward(w, c, tokens)
        close(name, transformers_logits(name, c, w, tokens), logits)
        loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-100, reduction="sum")
        loss.backward()
        write_model(f"{name}_model.txt", w, tokens=tokens, targets=targets, loss=loss.reshape(1), logits=logits)
