"""The Qwen part of make_golden.py: tiny models in plain torch and fp64, each compared with the classes of the
transformers package before it is written. Qwen3: heads wider than hidden / heads, norms of queries and keys, tied
embedding. Qwen2-MoE: biases of queries, keys and values alone, experts whose weights are not normalized, and a shared
expert with a gate."""
import torch
import torch.nn.functional as F
from transformers import Qwen2MoeConfig, Qwen2MoeForCausalLM, Qwen3Config, Qwen3ForCausalLM

from deepseek import close, swiglu
from make_golden import attention, batch, leaf, write_model

EPS, THETA, LAYERS = 1e-6, 50.0, 2


def make_weights(c):
    w = {}
    H, D, E = c["H"], c["D"], c["E"]
    qkv = (c["heads"] + 2 * c["groups"]) * D

    def param(name, *shape):
        w[name] = leaf(shape, float(len(w)), 0.3, 1.0 if name.endswith("norm.weight") else 0.0)

    def mlp(p, ffn):
        param(p + "gate_up.weight", 2 * ffn, H)
        param(p + "down.weight", H, ffn)

    param("embedding.weight", c["V"], H)
    for l in range(LAYERS):
        p = f"layers.{l}."
        param(p + "attention_norm.weight", H)
        param(p + "attention.qkv.weight", qkv, H)
        if E:
            param(p + "attention.qkv.bias", qkv)
        else:
            param(p + "attention.q_norm.weight", D)
            param(p + "attention.k_norm.weight", D)
        param(p + "attention.out.weight", H, c["heads"] * D)
        param(p + "mlp_norm.weight", H)
        if not E:
            mlp(p + "mlp.", c["ffn"])
            continue
        param(p + "mlp.router.weight", E, H)
        mlp(p + "mlp.shared.", c["shared_ffn"])
        param(p + "mlp.shared_gate.weight", 1, H)
        for e in range(E):
            mlp(f"{p}mlp.experts.{e}.", c["moe_ffn"])
    param("final_norm.weight", H)
    if E:
        param("head.weight", c["V"], H)
    return w


def normed_heads(qkv, w, p, c):
    heads = qkv.unflatten(-1, (-1, c["D"]))
    q, k, v = heads.split([c["heads"], c["groups"], c["groups"]], -2)
    q = q / (q.square().mean(-1, keepdim=True) + EPS).sqrt() * w[p + "q_norm.weight"]
    k = k / (k.square().mean(-1, keepdim=True) + EPS).sqrt() * w[p + "k_norm.weight"]
    return torch.cat((q, k, v), -2).flatten(-2)


def experts(x, w, p, c):
    flat = x.reshape(-1, x.shape[-1])
    scores = F.softmax(F.linear(flat, w[p + "router.weight"]), -1)
    chosen = torch.zeros_like(scores).scatter_(1, scores.topk(c["k"], -1)[1], 1)
    y = swiglu(flat, w, p + "shared.") * torch.sigmoid(flat @ w[p + "shared_gate.weight"][0]).unsqueeze(1)
    for e in range(c["E"]):
        y = y + (scores * chosen)[:, e: e + 1] * swiglu(flat, w, f"{p}experts.{e}.")
    return y.view_as(x)


def block(x, w, p, c):
    H = x.shape[-1]
    qkv = F.linear(F.rms_norm(x, (H,), w[p + "attention_norm.weight"], EPS), w[p + "attention.qkv.weight"],
                   w.get(p + "attention.qkv.bias"))
    if not c["E"]:
        qkv = normed_heads(qkv, w, p + "attention.", c)
    out = attention(qkv.transpose(0, 1), c["heads"], c["groups"], THETA).transpose(0, 1)
    x = x + F.linear(out, w[p + "attention.out.weight"])
    h = F.rms_norm(x, (H,), w[p + "mlp_norm.weight"], EPS)
    return x + (experts(h, w, p + "mlp.", c) if c["E"] else swiglu(h, w, p + "mlp."))


def transformers_model(c):
    common = dict(vocab_size=c["V"], hidden_size=c["H"], intermediate_size=c["ffn"], num_hidden_layers=LAYERS,
                  num_attention_heads=c["heads"], num_key_value_heads=c["groups"], rms_norm_eps=EPS,
                  rope_parameters={"rope_type": "default", "rope_theta": THETA}, attn_implementation="eager",
                  max_position_embeddings=16)
    if not c["E"]:
        return Qwen3ForCausalLM(Qwen3Config(head_dim=c["D"], tie_word_embeddings=True, **common))
    return Qwen2MoeForCausalLM(Qwen2MoeConfig(
        num_experts=c["E"], num_experts_per_tok=c["k"], moe_intermediate_size=c["moe_ffn"], norm_topk_prob=False,
        shared_expert_intermediate_size=c["shared_ffn"], decoder_sparse_step=1, mlp_only_layers=[],
        tie_word_embeddings=False, experts_implementation="eager", **common))


def their_mlp(state, b, w, a):
    state[b + "gate_proj.weight"], state[b + "up_proj.weight"] = w[a + "gate_up.weight"].chunk(2)
    state[b + "down_proj.weight"] = w[a + "down.weight"]


def transformers_logits(w, c, tokens):
    state = {"model.embed_tokens.weight": w["embedding.weight"], "model.norm.weight": w["final_norm.weight"],
             "lm_head.weight": w["head.weight" if c["E"] else "embedding.weight"]}
    rows = [c["heads"] * c["D"], c["groups"] * c["D"], c["groups"] * c["D"]]
    for l in range(LAYERS):
        a, b = f"layers.{l}.", f"model.layers.{l}."
        state[b + "input_layernorm.weight"] = w[a + "attention_norm.weight"]
        state[b + "post_attention_layernorm.weight"] = w[a + "mlp_norm.weight"]
        for kind in ("weight", "bias") if c["E"] else ("weight",):
            for name, part in zip("qkv", w[f"{a}attention.qkv.{kind}"].split(rows)):
                state[f"{b}self_attn.{name}_proj.{kind}"] = part
        state[b + "self_attn.o_proj.weight"] = w[a + "attention.out.weight"]
        if not c["E"]:
            for name in ("q_norm", "k_norm"):
                state[f"{b}self_attn.{name}.weight"] = w[f"{a}attention.{name}.weight"]
            their_mlp(state, b + "mlp.", w, a + "mlp.")
            continue
        a, b = a + "mlp.", b + "mlp."
        state[b + "gate.weight"] = w[a + "router.weight"]
        state[b + "shared_expert_gate.weight"] = w[a + "shared_gate.weight"]
        their_mlp(state, b + "shared_expert.", w, a + "shared.")
        for name in ("gate_up", "down"):
            state[f"{b}experts.{name}_proj"] = torch.stack(
                [w[f"{a}experts.{e}.{name}.weight"] for e in range(c["E"])])
    model = transformers_model(c).double().eval()
    missing, unexpected = model.load_state_dict(state, strict=False)
    assert not missing and not unexpected, (missing, unexpected)
    return model(tokens).logits


def model(file, **c):
    w = make_weights(c)
    tokens, targets = batch(c["V"], 6, 2)
    x = F.embedding(tokens, w["embedding.weight"])
    for l in range(LAYERS):
        x = block(x, w, f"layers.{l}.", c)
    h = F.rms_norm(x, (c["H"],), w["final_norm.weight"], EPS)
    logits = F.linear(h, w["head.weight" if c["E"] else "embedding.weight"])
    close(file, transformers_logits(w, c, tokens), logits)
    loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-100, reduction="sum")
    loss.backward()
    write_model(file, w, tokens=tokens, targets=targets, loss=loss.reshape(1), logits=logits)


def write_all():
    model("qwen3_model.txt", H=6, V=7, heads=4, groups=2, D=4, ffn=5, E=0)
    model("qwen2_moe_model.txt", H=8, V=7, heads=4, groups=2, D=2, ffn=5, E=5, k=2, moe_ffn=3, shared_ffn=4)
