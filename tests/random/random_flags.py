"""Settings of small random runs: a model, and layouts for it. Most fit together; what does not is refused by the program (exit code 2).

Legend: flags are lists of [name, value...], one for each option.
"""
import random


def divisors(number):
    return [d for d in range(1, number + 1) if number % d == 0]


class Draw:
    """Numbers of one seed; options are added as they are drawn."""

    def __init__(self, seed):
        self.seed = seed
        self.random = random.Random(seed)
        self.flags = []

    def pick(self, *values):
        return self.random.choice(values)

    def chance(self, probability):
        return self.random.random() < probability

    def add(self, name, *values):
        self.flags.append([name, *map(str, values)])

    def maybe(self, probability, name, *values):
        """One of the values, or the bare option where there are none."""
        if self.chance(probability):
            self.add(name, *([self.pick(*values)] if values else []))


def draw_attention(draw, heads, seq_length):
    if draw.chance(0.15):
        for name, values in (("--kv-lora-rank", (8, 16)), ("--q-lora-rank", (0, 12)), ("--qk-head-dim", (8,)), ("--qk-pos-emb-head-dim", (4, 8)), ("--v-head-dim", (4, 8))):
            draw.add(name, draw.pick(*values))
    else:
        draw.maybe(0.5, "--num-query-groups", *divisors(heads))
        draw.maybe(0.15, "--kv-channels", 4, 8, 12)
        if draw.chance(0.2):
            draw.add("--qk-layernorm")
            draw.maybe(0.3, "--qk-layernorm-width", "all-heads")
        draw.maybe(0.1, "--qk-l2-norm")
        draw.maybe(0.2, draw.pick("--add-qkv-bias", "--add-attention-bias"))
        draw.maybe(0.1, "--rotary-percent", 0.5)
        draw.maybe(0.15, "--attention-output-gate")
    draw.maybe(0.15, "--rotary-interleaved")
    if draw.chance(0.2):
        draw_linear_attention(draw, heads)
    if draw.chance(0.15):
        draw.add("--position-embedding-type", draw.pick("learned_absolute", "none"))
    else:
        draw_rotary_positions(draw, seq_length)
    windows = draw.chance(0.25)
    if windows:
        draw.add("--window-size", draw.pick(5, 8, 13, seq_length))
        draw.maybe(0.2, "--rotary-base-local", 500)
    chunks = draw.chance(0.15)
    if chunks:
        draw.add("--attention-chunk-size", draw.pick(3, 8, 20, seq_length))
    if windows or chunks:
        draw.maybe(0.5, "--window-attn-skip-freq", 2, 3, "[0]*2+[1]*4")
    if draw.chance(0.15):
        draw.add("--query-temperature-scale", 0.3)
        draw.add("--query-temperature-floor", draw.pick(2, 8))
    draw.maybe(0.2, "--softmax-type", "off-by-one", "learnable")
    draw.maybe(0.1, "--query-pre-attn-scalar", 10)
    draw.maybe(0.1, "--attn-logit-softcapping", 20)
    draw.maybe(0.1, "--attention-backend", "unfused")


def draw_mixers(draw, heads, layers, experts):
    """Layers with one mixer each. Without experts there is no E, with them at least one."""
    letters = [draw.pick("M", "M", "*", "-", *("E" if experts else "")) for _ in range(layers)]
    if experts and "E" not in letters:
        letters[draw.pick(*range(layers))] = "E"
    draw.add("--hybrid-layer-pattern", "".join(letters))
    if "M" not in letters:
        return
    draw.add("--mamba-num-groups", heads)
    draw.add("--mamba-num-heads", heads * draw.pick(1, 2))
    draw.add("--mamba-head-dim", draw.pick(4, 6))
    draw.add("--mamba-state-dim", draw.pick(4, 10))
    draw.maybe(0.3, "--mamba-conv-kernel-dim", 1, 2, 7)
    draw.maybe(0.3, "--mamba-min-step", 1e-3)


def draw_linear_attention(draw, heads):
    keys = heads * draw.pick(1, 2)
    draw.add("--linear-attention-type", "gated_delta_net")
    draw.add("--linear-num-key-heads", keys)
    draw.add("--linear-num-value-heads", keys * draw.pick(1, 2))
    draw.add("--linear-key-head-dim", draw.pick(4, 6))
    draw.add("--linear-value-head-dim", draw.pick(4, 10))
    draw.maybe(0.7, "--linear-attention-freq", 0, 2, "[1]+[0]*2")
    draw.maybe(0.3, "--linear-conv-kernel-dim", 1, 2, 7)


def draw_rotary_positions(draw, seq_length):
    draw.maybe(0.1, "--no-rope-freq", 2, 3)
    draw.maybe(0.1, "--rotary-base", 500)
    if draw.chance(0.1):
        draw.add("--rotary-scaling-factor", draw.pick(2, 8))
        draw.add("--original-max-position-embeddings", seq_length // 2)
        draw.maybe(0.3, "--no-yarn-truncate")
    elif draw.chance(0.15):
        draw.add("--rope-scaling-type", draw.pick("linear", "dynamic", "llama3"))
        draw.add("--rope-scaling-factor", draw.pick(2, 4))
        draw.add("--rope-scaling-original-length", seq_length // 2)


def draw_experts(draw, layers):
    experts = draw.pick(2, 4, 6, 8)
    draw.add("--num-experts", experts)
    topk = draw.random.randint(1, min(3, experts))
    draw.add("--moe-router-topk", topk)
    if topk == 1:
        draw.maybe(0.4, "--moe-apply-probs-on-input")
    draw.add("--moe-ffn-hidden-size", draw.pick(16, 24, 32))
    draw.maybe(0.2, "--moe-latent-size", 8, 20)
    if draw.chance(0.4):
        draw.add("--moe-shared-expert-intermediate-size", draw.pick(16, 32))
        draw.maybe(0.3, "--moe-shared-expert-gate")
    if draw.chance(0.3):
        draw.add("--first-k-dense-replace", min(1, layers - 1))
    elif layers > 1:
        draw.maybe(0.2, "--moe-layer-freq", 2, "[0]+[1]", "[1]+[0]*2")
    draw.maybe(0.4, "--moe-router-score-function", "sigmoid")
    if experts > 2 and draw.chance(0.2):
        draw.add("--moe-router-num-groups", 2)
        draw.maybe(0.5, "--moe-router-group-topk", 2)
        draw.maybe(0.3, "--moe-router-group-best", 1, 3)
    draw.maybe(0.3, "--moe-router-norm-topk")
    draw.maybe(0.1, "--moe-router-norm-top1")
    draw.maybe(0.2, "--moe-router-topk-scaling-factor", 2.5)
    if draw.chance(0.4):
        draw.add("--moe-router-load-balancing-type", draw.pick("aux_loss", "seq_aux_loss", "global_aux_loss"))
        draw.add("--moe-aux-loss-coeff", 0.01)
    draw.maybe(0.3, "--moe-z-loss-coeff", 0.001)
    draw.maybe(0.1, "--moe-expert-capacity-factor", 1, 1.5)
    draw.maybe(0.1, "--moe-router-force-load-balancing")
    draw.maybe(0.2, "--moe-router-enable-expert-bias")
    draw.maybe(0.2, "--add-router-bias")
    return experts


def draw_model(draw):
    """Returns what a layout must divide: (layers, heads, experts)."""
    layers, heads = draw.pick(1, 2, 3, 4, 5), draw.pick(2, 3, 4, 6, 8)
    hidden, seq_length = heads * draw.pick(4, 8, 16), draw.pick(24, 32, 48, 64)
    draw.add("--num-layers", layers)
    draw.add("--num-attention-heads", heads)
    draw.add("--hidden-size", hidden)
    draw.add("--ffn-hidden-size", hidden * draw.pick(1, 2, 3))
    draw.add("--seq-length", seq_length)
    draw_attention(draw, heads, seq_length)
    draw.maybe(0.3, "--normalization", "LayerNorm")
    draw.maybe(0.1, "--apply-layernorm-1p")
    if draw.chance(0.4):
        draw.add(*draw.pick(("--norm-placement", "both"), ("--norm-placement", "behind"), ("--residual-form", "parallel"), ("--residual-form", "parallel-one-norm")))
    draw.add("--activation", draw.pick("swiglu", "gelu", "geglu", "gelu_erf", "squared_relu", "swigluoai"))
    draw.maybe(0.2, "--add-bias-linear")
    draw.maybe(0.25, "--tie-embeddings")
    draw.maybe(0.1, "--hidden-dropout", 0.1)
    draw.maybe(0.1, "--attention-dropout", 0.1)
    draw.maybe(0.1, "--final-logit-softcapping", 30)
    draw.maybe(0.1, "--scale-embeddings")
    draw.maybe(0.1, "--add-head-bias")
    draw.maybe(0.1, "--vocab-size", 300, 1001)
    experts = draw_experts(draw, layers) if draw.chance(0.4) else 0
    mixers = Draw(f"{draw.seed}, mixers")  # of its own, so that a seed's other numbers stay what they were
    factors = Draw(f"{draw.seed}, factors")
    factors.maybe(0.15, "--embedding-multiplier", 0.5, 12)
    factors.maybe(0.15, "--residual-multiplier", 0.22, 2)
    factors.maybe(0.15, "--logit-scale", 0.25, 1.5)
    if ["--normalization", "LayerNorm"] in draw.flags:
        factors.maybe(0.3, "--no-layernorm-bias")
    draw.flags += factors.flags
    if mixers.chance(0.15):
        draw_mixers(mixers, heads, layers, experts)
        draw.flags += mixers.flags
    draw.maybe(0.15, "--mtp-num-layers", 1, 2)
    draw.mtp_modules = int(draw.flags[-1][1]) if draw.flags[-1][0] == "--mtp-num-layers" else 0
    repeats = Draw(f"{draw.seed}, repeats")
    if draw.mtp_modules and repeats.chance(0.5):
        draw.add("--mtp-use-repeated-layer")
    for option in ("--reset-attention-mask", "--reset-position-ids", "--eod-mask-loss"):
        draw.maybe(0.12, option)
    draw_optimizer(draw)
    return layers, heads, experts


def draw_optimizer(draw):
    optimizer = draw.pick("adamw", "adamw", "sgd", "muon", "lion")
    draw.add("--optimizer", optimizer)
    if optimizer == "muon":
        draw.maybe(0.6, "--muon-distribution", "distributed", "layer-sharded")
        draw.maybe(0.2, "--muon-num-ns-steps", 3)
    if optimizer == "sgd":
        draw.maybe(0.5, "--sgd-momentum", 0.9)
    if draw.chance(0.2):
        for name, value in (("--weight-decay-incr-style", draw.pick("linear", "cosine")), ("--start-weight-decay", draw.pick(0, 0.2)), ("--end-weight-decay", draw.pick(0, 0.3))):
            draw.add(name, value)
    else:
        draw.maybe(0.2, "--weight-decay", 0)
    if draw.chance(0.25):
        draw.add("--qk-clip")
        draw.add("--qk-clip-threshold", draw.pick(0.001, 0.02, 0.1))
        draw.maybe(0.3, "--qk-clip-alpha", 0, 0.3, 1)
    else:
        draw.maybe(0.1, "--log-max-attention-logit")


def draw_stage_layout(draw, layers, stages):
    """Any number of layers in each stage, and the modules of MTP in any behind the last of them."""
    cuts = [0, *sorted(draw.random.randint(0, layers) for _ in range(stages - 1)), layers]
    counts = [end - begin for begin, end in zip(cuts, cuts[1:])]
    last = max(stage for stage in range(stages) if counts[stage] > 0)
    own = draw.random.randint(last, stages - 1)
    texts = ["t" * count + ("m" * draw.mtp_modules if stage == own else "") for stage, count in enumerate(counts)]
    draw.add("--pipeline-layout", "E" + "|".join(texts) + "L")


def draw_schedule(draw, pp, layers):
    stages = pp
    if layers >= 2 * pp and draw.chance(0.3):
        draw.add("--pipeline-schedule", draw.pick("interleaved-1f1b", "looped-bfs"))
        stages *= draw.pick(*[v for v in (2, 3) if layers >= v * pp])
        draw.add("--vpp", stages // pp)
    else:
        folded = ("zb-v", "v-half", "v-min", "dualpipe-v")
        draw.add("--pipeline-schedule", draw.pick("1f1b", "gpipe", "zb-h1", "zb-h2", "zb-2p", *((*folded, "dualpipe") if layers >= 2 * pp else ())))
        stages *= 2 if draw.flags[-1][1] in folded else 1
    if draw.chance(0.3):
        draw_stage_layout(draw, layers, stages)


def draw_recomputation(draw):
    if draw.chance(0.5):
        draw.add("--recompute-granularity", "selective")
        draw.maybe(0.5, "--recompute-modules", "mlp", "moe", "core_attn,mlp")
    else:
        draw.add("--recompute-granularity", "full")
        draw.maybe(0.5, "--recompute-method", "uniform")
        draw.maybe(0.5, "--recompute-num-layers", 1, 2)


def draw_layout(draw, layers, heads, experts):
    """At most 12 ranks. Returns the number of data-parallel ranks."""
    tp = draw.pick(*[d for d in divisors(heads) if d <= 4])
    cp, pp = draw.pick(1, 1, 2, 4), draw.pick(*[p for p in (1, 1, 2, 3, 4) if p <= layers])
    if tp * cp * pp > 8:
        cp = 1
    dp = draw.pick(*[d for d in (1, 2, 3, 4) if tp * cp * pp * d <= 12] or [1])
    for name, size in (("--world-size", tp * cp * pp * dp), ("--tp", tp), ("--cp", cp), ("--pp", pp), ("--dp", dp)):
        draw.add(name, size)
    if tp > 1 and experts == 0:
        draw.maybe(0.3, "--no-sp")
    if cp > 1:
        draw.add("--cp-comm-type", draw.pick("p2p", "all_gather", "a2a", "a2a+p2p"))
        draw.add("--cp-balance", draw.pick("zigzag", "contiguous", "stripe"))
        if cp == 4:
            draw.maybe(0.2, "--hierarchical-context-parallel-sizes", "2,2", "1,4", "4,1")
    if experts:
        ep = draw.pick(*[d for d in divisors(tp * cp * dp) if experts % d == 0])
        draw.add("--ep", ep)
        draw.add("--moe-token-dispatcher-type", draw.pick("alltoall", "allgather", "dedup", "rdep"))
        if tp * cp * dp // ep % 2 == 0:
            draw.maybe(0.3, "--etp", 2)
        draw.maybe(0.2, "--overlap-moe-expert-parallel-comm")
    if pp > 1:
        draw_schedule(draw, pp, layers)
    if dp * cp > 1 and draw.chance(0.6):
        stage = draw.pick(1, 2, 3)
        draw.add("--zero-stage", stage)
        if stage > 1:
            draw.maybe(0.4, "--grad-sync", "microbatch")
        draw.maybe(0.2, "--num-distributed-optimizer-instances", *[d for d in (2, 3) if dp % d == 0] or [1])
    draw.maybe(0.3, "--overlap-grad-reduce")
    draw.maybe(0.2, "--ddp-bucket-bytes", 1000, 20000)
    draw.maybe(0.2, "--grad-accumulation", "pairwise")
    if draw.chance(0.3):
        draw_recomputation(draw)
    draw.maybe(0.2, "--keep-cheap-outputs")
    draw.maybe(0.1, "--order", "pp-tp-cp-ep-dp", "dp-tp-cp-ep-pp", "tp-cp-ep-pp-dp")
    draw.maybe(0.1, "--gpus-per-node", 2, 3, 4)
    draw.maybe(0.1, "--collectives", "gloo")
    return dp


def values_of(flags):
    return {name: rest for name, *rest in flags}


def with_expert_overlap(draw, flags):
    names = {flag[0] for flag in flags}
    wanted = {"--ep", "--moe-shared-expert-intermediate-size"} <= names and draw.chance(0.5)
    flags = [*flags, ["--moe-shared-expert-overlap"]] if wanted else flags
    return [*flags, ["--delay-wgrad-compute"]] if "--ep" in names and draw.chance(0.5) else flags


def with_gather_overlap(draw, flags):
    values = values_of(flags)
    wanted = values.get("--zero-stage") in (["1"], ["2"]) and draw.chance(0.5)
    return [*flags, ["--overlap-param-gather"]] if wanted else flags


def with_tensor_overlap(draw, flags):
    values = values_of(flags)
    wanted = "--tp" in values and "--no-sequence-parallel" not in values and draw.chance(0.4)
    return [*flags, ["--tp-comm-overlap"]] if wanted else flags


def with_padded_experts(draw, flags):
    names = {flag[0] for flag in flags}
    if "--num-experts" not in names or not draw.chance(0.5):
        return flags
    capacity = [] if "--moe-expert-capacity-factor" in names else [["--moe-expert-capacity-factor", "1.25"]]
    return [*flags, *capacity, ["--moe-pad-expert-input-to-capacity"]]


def with_more_microbatches(draw, flags):
    """Three times as many, so that a plan repeats most of their passes."""
    if not draw.chance(0.4):
        return flags
    return [[name, str(3 * int(rest[0]))] if name in ("--num-microbatches", "--gbs") else [name, *rest] for name, *rest in flags]


def with_growing_batch(draw, flags):
    """From half of it, in the first steps."""
    values = values_of(flags)
    batch, microbatches = int(values["--gbs"][0]), int(values["--num-microbatches"][0])
    if microbatches % 2 or not draw.chance(0.3):
        return flags
    ramp = f"{batch // 2} {batch // 2} {draw.pick(1, batch // 2, batch)}"
    return [*(flag for flag in flags if flag[0] != "--num-microbatches"), ["--rampup-batch-size", ramp]]


def with_groups(draw, flags, microbatches):
    """Interleaved stages, at times with larger groups of microbatches than their schedule chooses."""
    values = values_of(flags)
    if values.get("--pipeline-schedule") != ["interleaved-1f1b"] or not draw.chance(0.5):
        return flags
    pp = int(values["--pp"][0])
    groups = [g for g in range(pp, microbatches + 1) if microbatches % g == 0 or microbatches % g >= pp]
    return [*flags, ["--microbatch-group-size-per-virtual-pipeline-stage", str(draw.pick(*groups))]] if groups else flags


def with_diloco(draw, flags, replicas):
    """Replicas instead of groups that shard."""
    fragments, interval = draw.pick(1, 1, 2), draw.pick(1, 2, 3)
    diloco = {"sync-steps": fragments * interval, "replicas": replicas, "fragments": fragments,
              "sync-delay": draw.pick(*range(interval)), "update-alpha": draw.pick(0, 0, 0.5)}
    return [*(flag for flag in flags if flag[0] != "--num-distributed-optimizer-instances"),
            *([f"--diloco-{name}", str(value)] for name, value in diloco.items())]


def scaled(flags, factor):
    """The same model, so many times as wide and long: small tensors that a plan leaves out weigh less."""
    sizes = {"--hidden-size", "--ffn-hidden-size", "--seq-length", "--moe-ffn-hidden-size", "--window-size", "--moe-shared-expert-intermediate-size", "--moe-latent-size", "--kv-lora-rank", "--q-lora-rank", "--qk-head-dim", "--qk-pos-emb-head-dim", "--v-head-dim", "--kv-channels"}
    return [[name, str(int(values[0]) * factor)] if name in sizes else [name, *values] for name, *values in flags]


def words(flags):
    return [word for flag in flags for word in flag]
