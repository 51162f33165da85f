"""The peer's model, its loss and its batches: the same in every mode of peer.py."""
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F


def rope_tables(seq, dim, base=10000.0):
    f = 1.0 / base ** (torch.arange(0, dim, 2).float() / dim)
    t = torch.outer(torch.arange(seq).float(), f)
    return t.cos(), t.sin()


def rope(x, cos, sin):                                   # x: [b, h, s, d]
    a, b = x.chunk(2, -1)
    return torch.cat((a * cos - b * sin, a * sin + b * cos), -1)


class Attention(nn.Module):
    def __init__(s, c):
        super().__init__()
        s.hd = c.hidden // c.heads
        s.wq = nn.Linear(c.hidden, c.hidden, bias=False)
        s.wk = nn.Linear(c.hidden, c.hidden, bias=False)
        s.wv = nn.Linear(c.hidden, c.hidden, bias=False)
        s.wo = nn.Linear(c.hidden, c.hidden, bias=False)

    def forward(s, x, cos, sin):
        q, k, v = (w(x).unflatten(-1, (-1, s.hd)).transpose(1, 2) for w in (s.wq, s.wk, s.wv))
        o = F.scaled_dot_product_attention(rope(q, cos, sin), rope(k, cos, sin), v, is_causal=True)
        return s.wo(o.transpose(1, 2).flatten(2))


class SwiGLU(nn.Module):
    def __init__(s, c):
        super().__init__()
        s.w1 = nn.Linear(c.hidden, c.ffn, bias=False)
        s.w3 = nn.Linear(c.hidden, c.ffn, bias=False)
        s.w2 = nn.Linear(c.ffn, c.hidden, bias=False)

    def forward(s, x):
        return s.w2(F.silu(s.w1(x)) * s.w3(x))


class MoE(nn.Module):
    """Top-k routed experts; with an EP group of size W each rank keeps experts/W of them."""
    def __init__(s, c):
        super().__init__()
        s.E, s.k, s.group = c.experts, c.topk, None
        s.router = nn.Linear(c.hidden, c.experts, bias=False)
        s.experts = nn.ModuleList(SwiGLU(c) for _ in range(c.experts))

    def shard(s, group):
        w, r = dist.get_world_size(group), dist.get_rank(group)
        n = s.E // w
        s.group, s.experts = group, nn.ModuleList(list(s.experts)[r * n:(r + 1) * n])

    def forward(s, x):
        b, n, h = x.shape
        x = x.reshape(-1, h)
        w, idx = s.router(x).softmax(-1).topk(s.k, -1)
        w = w / w.sum(-1, keepdim=True)
        flat = idx.flatten()
        order = flat.argsort(stable=True)                        # sort (token, slot) pairs by expert
        send = torch.bincount(flat, minlength=s.E)
        xs = x[order // s.k]
        if s.group is None:
            ys = torch.cat([e(t) for e, t in zip(s.experts, xs.split(send.tolist()))])
        else:
            import torch.distributed._functional_collectives as fc
            W = dist.get_world_size(s.group)
            le = s.E // W                                        # local experts
            recv = torch.empty_like(send)
            dist.all_to_all_single(recv, send, group=s.group)    # recv[src*le + e]
            ins, outs = send.view(W, le).sum(1).tolist(), recv.view(W, le).sum(1).tolist()
            xr = fc.all_to_all_single_autograd(xs, outs, ins, s.group)
            parts = xr.split(recv.tolist())
            yr = [None] * len(parts)
            for e, ex in enumerate(s.experts):
                js = range(e, len(parts), le)
                for j, y in zip(js, ex(torch.cat([parts[j] for j in js])).split([parts[j].shape[0] for j in js])):
                    yr[j] = y
            ys = fc.all_to_all_single_autograd(torch.cat(yr), ins, outs, s.group)
        y = torch.zeros_like(x).index_add(0, order // s.k, ys * w.flatten()[order].unsqueeze(1))
        return y.view(b, n, h)


class Block(nn.Module):
    def __init__(s, c, moe):
        super().__init__()
        s.n1, s.n2 = nn.RMSNorm(c.hidden, eps=1e-5), nn.RMSNorm(c.hidden, eps=1e-5)
        s.attn = Attention(c)
        s.mlp = MoE(c) if moe else SwiGLU(c)

    def forward(s, x, cos, sin):
        x = x + s.attn(s.n1(x), cos, sin)
        return x + s.mlp(s.n2(x))


class GPT(nn.Module):
    def __init__(s, c, moe=False):
        super().__init__()
        s.embed = nn.Embedding(c.vocab, c.hidden)
        s.layers = nn.ModuleDict({str(i): Block(c, moe) for i in range(c.layers)})
        s.norm = nn.RMSNorm(c.hidden, eps=1e-5)
        s.head = nn.Linear(c.hidden, c.vocab, bias=False)
        cos, sin = rope_tables(c.seq, c.hidden // c.heads)
        s.register_buffer("cos", cos, persistent=False)
        s.register_buffer("sin", sin, persistent=False)
        for p in s.parameters():
            if p.dim() > 1:
                nn.init.normal_(p, std=0.02)

    def keep(s, lo, hi, L):                                      # a pipeline stage: layers [lo, hi)
        s.layers = nn.ModuleDict({k: v for k, v in s.layers.items() if lo <= int(k) < hi})
        if lo > 0:
            s.embed = None
        if hi < L:
            s.norm = s.head = None
        return s

    def forward(s, x):
        h = s.embed(x) if s.embed is not None else x
        for l in s.layers.values():
            h = l(h, s.cos, s.sin)
        return s.head(s.norm(h)) if s.head is not None else h


def loss_fn(logits, y):
    return F.cross_entropy(logits.flatten(0, 1), y.flatten())


def batch_at(c, step):
    """The same global batch in every mode: walks along a fixed token permutation, 10% of tokens replaced at random."""
    g = torch.Generator().manual_seed(1000 + step)
    perm = torch.randperm(c.vocab, generator=torch.Generator().manual_seed(7))
    start = torch.randint(c.vocab, (c.batch, 1), generator=g)
    x = perm[(start + torch.arange(c.seq + 1)) % c.vocab]
    noise = torch.rand(c.batch, c.seq + 1, generator=g) < 0.1
    x = torch.where(noise, torch.randint(c.vocab, x.shape, generator=g), x)
    return x[:, :-1].contiguous(), x[:, 1:].contiguous()


def model_flops_per_step(c, moe):
    mlp = 3 * c.hidden * c.ffn * (c.topk if moe else 1)
    mat = c.layers * (4 * c.hidden ** 2 + mlp) + c.hidden * c.vocab
    attn = c.layers * 2 * c.seq * c.hidden // 2                  # causal: half of QK^T + PV
    return 6 * (mat + attn) * c.batch * c.seq
