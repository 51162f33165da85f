"""Steps of training here and in plain PyTorch, of transformers' models, from the same weights on the same tokens:
losses, gradient norms and every weight afterwards. With SGD a weight moves by its gradient, so that a wrong factor
shows. Run with a Python that has torch, transformers and safetensors:

    python tests/interop/hf_training.py build/release/bin/ranklab [WORD ...]

The words choose among the cases. Ends with 1 when a difference is above its bar."""
import json
import sys
import tempfile

from hf_models import THEIRS, random_model, ranklab
import hf_qk_clip
import torch
import torch.nn.functional as F
from transformers import AutoModelForCausalLM

LOSS_BAR, NORM_BAR, WEIGHT_BAR = 1e-5, 1e-4, 1e-3    # relative; of a weight, to what training changed
STEPS, LENGTH, LR, DECAY = 3, 24, 0.05, 0.1
EOD = ord("e")
LAYOUTS = [["--world-size", 1], ["--tp", 2, "--world-size", 4], ["--dp", 4, "--zero-stage", 3],
           ["--cp", 2, "--tp", 2, "--world-size", 4],
           ["--dp", 2, "--zero-stage", 1, "--recompute-granularity", "full"]]
failures = []


def load(folder):
    return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()


# By step and microbatch of all ranks: tokens and targets.
def batches(toml, flags):
    steps = []
    for step in range(STEPS):
        data = json.loads(ranklab("data", "batch", "--config", toml, *flags, "--step", step, "--json"))["data"]
        steps.append([])
        for rank in data["batch"]:
            for microbatch in rank["microbatches"]:
                rows = microbatch["sequences"]
                whole = torch.tensor([row["tokens"] + [row["last_target"]] for row in rows])
                steps[-1].append((whole[:, :-1], whole[:, 1:]))
    return steps


# The bias of a router that affects the choice of experts alone; ERNIE 4.5's class keeps it in a module of its own.
def choice_bias(router):
    return getattr(getattr(router, "moe_statics", router), "e_score_correction_bias", None)


class Balancing:
    """The losses of Switch (eq. 4) and ST-MoE (eq. 5) of every router, and the bias of DeepSeek-V3."""

    def __init__(self, model, coefficient, z, by_sequence, rate):
        self.model, self.coefficient, self.z, self.by_sequence, self.rate = model, coefficient, z, by_sequence, rate
        self.routers = [m for n, m in model.named_modules() if n.endswith((".mlp.gate", ".mlp.router"))]
        self.inputs, self.counts = {}, {}
        for router in self.routers:
            router.register_forward_pre_hook(lambda module, args: self.inputs.__setitem__(module, args[0]))

    def chosen(self, router, scores):
        config, topk = self.model.config, self.model.config.num_experts_per_tok
        bias = choice_bias(router)
        choice = scores.detach() if bias is None else scores.detach() + bias
        groups = getattr(config, "n_group", 1)
        if groups > 1:
            by_group = choice.view(len(choice), groups, -1)
            best = by_group.topk(2, -1)[0].sum(-1).topk(config.topk_group, -1)[1]
            allowed = torch.zeros(by_group.shape[:2]).scatter_(1, best, 1).bool()
            choice = by_group.masked_fill(~allowed.unsqueeze(-1), float("-inf")).flatten(1)
        return choice.topk(topk, -1)[1]

    def loss(self, sequences):
        total, topk = 0, self.model.config.num_experts_per_tok
        for router in self.routers:
            x = self.inputs[router].reshape(-1, router.weight.shape[1])
            logits = F.linear(x, router.weight, getattr(router, "bias", None))
            sigmoid = hasattr(router, "e_score_correction_bias")
            scores = logits.sigmoid() if sigmoid else logits.softmax(-1)
            share = (scores / scores.sum(-1, True)).view(sequences if self.by_sequence else 1, -1, scores.shape[1])
            best = torch.zeros_like(scores).scatter_(1, scores.topk(topk, -1)[1], 1).view(share.shape)
            per_row = (best.mean(1) * share.mean(1)).sum(-1) * scores.shape[1] / topk
            total = total + self.coefficient * per_row.mean() + self.z * logits.logsumexp(-1).square().mean()
            count = torch.bincount(self.chosen(router, scores).flatten(), minlength=scores.shape[1])
            self.counts[router] = self.counts.get(router, 0) + count.float()
        return total

    def end_step(self):
        for router, count in self.counts.items():
            if choice_bias(router) is not None:
                choice_bias(router).data += self.rate * torch.sign(count.mean() - count)
        self.counts = {}


# documents: "", "masked" (nothing is lost for what follows the end of one) or "apart" (each is a text of its own, too).
def token_losses(model, tokens, targets, documents):
    if documents != "apart":
        losses = F.cross_entropy(model(tokens).logits.flatten(0, 1), targets.flatten(), reduction="none")
        return losses[tokens.flatten() != EOD] if documents else losses
    losses = []
    for row, target in zip(tokens, targets):
        ends = [i + 1 for i, token in enumerate(row.tolist()) if token == EOD] + [len(row)]
        for begin, end in zip([0] + ends, ends):
            if end > begin:
                one = F.cross_entropy(model(row[None, begin:end]).logits[0], target[begin:end], reduction="none")
                losses.append(one[row[begin:end] != EOD])
    return torch.cat(losses)


def train_there(model, steps, optimizer, clip, documents, balancing, qk_clip=None):
    losses, norms, heads = [], [], []
    for microbatches in steps:
        logits = hf_qk_clip.Logits(model.config.num_hidden_layers)
        optimizer.zero_grad()
        counted = sum(((x != EOD).sum() if documents else x.numel()) for x, _ in microbatches)
        loss = 0
        for tokens, targets in microbatches:
            with logits:
                part = token_losses(model, tokens, targets, documents).sum() / counted
            loss += part.item()
            (part + balancing.loss(len(tokens)) / len(microbatches) if balancing else part).backward()
        losses.append(loss)
        norms.append(torch.nn.utils.clip_grad_norm_(model.parameters(), clip).item())
        optimizer.step()
        if qk_clip:
            heads.append((max(float(one.max()) for one in logits.largest), hf_qk_clip.clip(model, logits, *qk_clip)))
        if balancing:
            balancing.end_step()
    return losses, norms, heads


def no_decay(name, parameter):
    return parameter.dim() < 2 or name.endswith("bias")


def sgd(model):
    named = list(model.named_parameters())
    return torch.optim.SGD([dict(params=[p for n, p in named if not no_decay(n, p)], weight_decay=DECAY),
                            dict(params=[p for n, p in named if no_decay(n, p)])], lr=LR, momentum=0.5)


# What training changed there and here; a change that fp32 rounds away is none.
def compare_weights(name, before, there, here):
    for key, old in before.items():
        change, off = (there[key] - old).norm().item(), (there[key] - here[key]).norm().item()
        if off > WEIGHT_BAR * change + 3e-7 * old.norm().item():
            failures.append(f"{name}: {key} is off by {off:.2e}, training changed it by {change:.2e}")


# Between the two middle ones of the heads' largest logits in the first step: half of them are clipped.
def middle_logit(model, microbatches):
    with torch.no_grad(), hf_qk_clip.Logits(model.config.num_hidden_layers) as logits:
        for tokens, _ in microbatches:
            model(tokens)
    ordered = torch.cat(logits.largest).sort()[0]
    return ordered[len(ordered) // 2 - 1:len(ordered) // 2 + 1].mean().item()


def case(name, layout, folder, documents="", balancing=None, alpha=None):
    model = random_model(*THEIRS[name])
    model.save_pretrained(folder + "/hf")
    ranklab("ckpt", "import-hf", folder + "/hf", folder + "/ck")
    toml = folder + "/ck/model.toml"
    coefficient, z, kind, rate = balancing or (0, 0, "none", 0)
    flags = [*layout, "--mock-data", "--global-batch-size", 8, "--num-microbatches", 2, "--hidden-dropout", 0,
             "--attention-dropout", 0, "--moe-router-load-balancing-type", kind, "--moe-aux-loss-coeff", coefficient,
             "--moe-z-loss-coeff", z, "--moe-router-bias-update-rate", rate]
    if THEIRS[name][0] != "GPT2":    # whose positions are as many as the table has
        flags += ["--seq-length", LENGTH]
    if documents:
        flags += ["--eod-mask-loss", "--eod-token", EOD]
    if documents == "apart":
        flags += ["--reset-attention-mask", "--reset-position-ids"]
    qk_clip = None
    if alpha is not None:
        qk_clip = (middle_logit(load(folder + "/hf"), batches(toml, flags)[0]), alpha)
        flags += ["--qk-clip", "--qk-clip-threshold", qk_clip[0], "--qk-clip-alpha", alpha]
    label = " ".join(str(word) for word in [f"{name},", *layout, documents, kind if balancing else "",
                                         "QK-clip" if qk_clip else ""] if word != "")
    ranklab("train", "--config", toml, *flags, "--load", folder + "/ck", "--finetune", "--train-iters", STEPS,
            "--optimizer", "sgd", "--sgd-momentum", 0.5, "--lr", LR, "--lr-decay-style", "constant",
            "--lr-warmup-iters", 0, "--weight-decay", DECAY, "--clip-grad", 0.7, "--eval-interval", 0,
            "--sample-tokens", 0, "--no-trace", "--log-dir", folder + "/log", "--save", folder + "/trained")
    ranklab("ckpt", "export-hf", folder + "/trained", folder + "/back", "--tokenizer", "none")
    model = load(folder + "/hf")
    before = {key: value.clone() for key, value in model.state_dict().items()}
    there = Balancing(model, coefficient, z, kind == "seq_aux_loss", rate) if balancing else None
    losses, norms, heads = train_there(model, batches(toml, flags), sgd(model), 0.7, documents, there, qk_clip)
    rows = [json.loads(line) for line in open(folder + "/log/metrics.jsonl")]
    rows = [row for row in rows if "loss" in row]
    off = max(abs(row["loss"] - loss) / loss for row, loss in zip(rows, losses, strict=True))
    norm_off = max(abs(row["grad_norm"] - norm) / norm for row, norm in zip(rows, norms, strict=True))
    if not (off <= LOSS_BAR and norm_off <= NORM_BAR):
        failures.append(f"{label}: loss off by {off}, gradient norm by {norm_off}")
    for row, (largest, clipped) in zip(rows, heads):
        if not (abs(row["max_attention_logit"] - largest) <= NORM_BAR * largest and row["clipped_heads"] == clipped):
            failures.append(f"{label}: {row['max_attention_logit']}, {row['clipped_heads']} heads clipped, not {largest}, {clipped}")
    if qk_clip and heads[0][1] == 0:
        failures.append(f"{label}: no head was clipped")
    compare_weights(label, before, model.state_dict(), load(folder + "/back").state_dict())
    print(f"{label}: loss {off:.1e}, norm {norm_off:.1e}", flush=True)


cases = []
for name, (family, _) in THEIRS.items():
    if any(word in name for word in ("bf16", "fp16", "FP8", "MXFP4")):
        continue
    cases.append((name, LAYOUTS[len(cases) % len(LAYOUTS)]))
for name in ("Llama", "GPT-2", "gpt-oss", "Mistral, window", "DeepSeek-V3"):
    cases += [(name, ["--dp", 4], "apart"), (name, ["--cp", 2, "--tp", 2, "--world-size", 4], "apart")]
for name, kind in (("Mixtral", "aux_loss"), ("Qwen2-MoE", "aux_loss"), ("gpt-oss", "seq_aux_loss"),
                   ("DeepSeek-V3", "seq_aux_loss"), ("DeepSeek-V3", "aux_loss"), ("GLM-4.5", "seq_aux_loss"),
                   ("ERNIE 4.5, experts", "aux_loss")):
    for layout in (["--world-size", 1], ["--tp", 2, "--ep", 2, "--world-size", 2, "--sequence-parallel"]):
        cases.append((name, layout, "masked" if name == "Mixtral" else "", (0.1, 0.01, kind, 0.001)))
for name in ("Llama", "Qwen2", "Mistral, window", "Qwen3", "DeepSeek-V3"):
    for layout in (["--world-size", 1], ["--dp", 2, "--tp", 2, "--zero-stage", 2], ["--cp", 2, "--tp", 2, "--world-size", 4]):
        cases.append((name, layout, "", None, 0.3))

if __name__ == "__main__":
    for one in cases:
        if len(sys.argv) < 3 or any(word in one[0] for word in sys.argv[2:]):
            with tempfile.TemporaryDirectory() as root:
                case(one[0], one[1], root, *one[2:])
    for failure in failures:
        print("FAILED:", failure)
    sys.exit(bool(failures))
