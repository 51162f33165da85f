"""The same llama_1b training step in plain PyTorch, eager or compiled, as the kit's yardstick. Fp32 master weights,
bf16 autocast, flash attention through scaled_dot_product_attention, fused AdamW, clip at 1.
peer_llama.py [--sequences 1] [--compile] [--steps 6]"""
import argparse
import os
import statistics
import time

import torch
import torch.nn.functional as F
from torch import nn

LAYERS, HIDDEN, HEADS, GROUPS, FFN, VOCAB, SEQ = 16, 2048, 32, 8, 8192, 128256, 8192
HEAD = HIDDEN // HEADS


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(HIDDEN, (HEADS + 2 * GROUPS) * HEAD, bias=False)
        self.out = nn.Linear(HIDDEN, HIDDEN, bias=False)

    def forward(self, x, cos, sin):
        batch, seq, _ = x.shape
        q, k, v = self.qkv(x).view(batch, seq, -1, HEAD).split((HEADS, GROUPS, GROUPS), dim=2)
        q, k = (self.turn(t, cos, sin).transpose(1, 2) for t in (q, k))
        y = F.scaled_dot_product_attention(q, k, v.transpose(1, 2), is_causal=True, enable_gqa=True)
        return self.out(y.transpose(1, 2).reshape(batch, seq, HIDDEN))

    @staticmethod
    def turn(x, cos, sin):
        a, b = x.float().chunk(2, -1)
        return torch.cat((a * cos - b * sin, a * sin + b * cos), -1).to(x.dtype)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.RMSNorm(HIDDEN), nn.RMSNorm(HIDDEN)
        self.attention = Attention()
        self.gate, self.up = (nn.Linear(HIDDEN, FFN, bias=False) for _ in range(2))
        self.down = nn.Linear(FFN, HIDDEN, bias=False)

    def forward(self, x, cos, sin):
        x = x + self.attention(self.norm1(x), cos, sin)
        y = self.norm2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Llama(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, HIDDEN)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm = nn.RMSNorm(HIDDEN)
        angle = torch.outer(torch.arange(SEQ), 500000.0 ** (-torch.arange(0, HEAD, 2) / HEAD))
        self.register_buffer("cos", angle.cos()[:, None, :])
        self.register_buffer("sin", angle.sin()[:, None, :])

    def forward(self, tokens, targets):
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x, self.cos, self.sin)
        logits = F.linear(self.norm(x), self.embed.weight)
        return F.cross_entropy(logits.float().view(-1, VOCAB), targets.view(-1))


def flops_per_token(parameters):
    # 6 a weight and 6 x layers x hidden x seq of causal attention, forward and backward: the model's, not the kernels'.
    return 6 * parameters + 6 * LAYERS * HIDDEN * SEQ


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--sequences", type=int, default=1)
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--compile", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(0)
    with torch.device("cuda"):
        model = Llama()
    for parameter in model.parameters():
        if parameter.dim() > 1:
            nn.init.normal_(parameter, std=0.02)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
    step_model = torch.compile(model) if args.compile else model
    tokens = torch.randint(VOCAB, (args.sequences, SEQ + 1), device="cuda")
    times = []
    for _ in range(args.steps):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for i in range(args.sequences):
            with torch.autocast("cuda", dtype=torch.bfloat16):
                loss = step_model(tokens[i : i + 1, :-1], tokens[i : i + 1, 1:]) / args.sequences
            loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        torch.cuda.synchronize()
        times.append(time.perf_counter() - begin)
    seconds = statistics.median(times[len(times) // 2 :])
    count = args.sequences * SEQ
    parameters = sum(p.numel() for p in model.parameters())
    figures = [("tokens/s", count / seconds, ""), ("step", 1e3 * seconds, "ms"),
               ("MFU", 100 * flops_per_token(parameters) * count / seconds / 989.4e12, "%"),
               ("peak memory", torch.cuda.max_memory_allocated() / 2**30, "GiB")]
    with open(os.environ.get("RANKLAB_GPU_FIGURES", os.devnull), "a") as out:
        for name, value, unit in figures:
            out.write("%s\t%s\t%.4g\t%s\n" % (os.environ.get("STEP", "peer"), name, value, unit))
            print(name, "%.4g" % value, unit)
    print("loss", loss.item())


main()
