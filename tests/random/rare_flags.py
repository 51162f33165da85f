"""Settings that few runs change, for random runs: those of a model, of the optimizer and its schedules, of precision, and of the machine."""
from random_flags import Draw, values_of


def rotated_pairs(values):
    """How many pairs of a head's numbers are rotated."""
    def number(name, otherwise):
        return float(values[name][0]) if name in values else otherwise
    head = number("--kv-channels", number("--hidden-size", 0) / number("--num-attention-heads", 1))
    return int(number("--qk-pos-emb-head-dim", head * number("--rotary-percent", 1))) // 2


def draw_positions(draw, values):
    """How rotary positions are scaled."""
    scaled = {"--rotary-scaling-factor", "--rope-scaling-type", "--position-embedding-type"} & set(values)
    if not scaled and draw.chance(0.1):
        draw.add("--rope-scaling-type", "longrope")
        draw.add("--rope-scaling-factor", 4)
        draw.add("--rope-scaling-original-length", int(values["--seq-length"][0]) // draw.pick(1, 2))
        for name in ("--rope-short-factors", "--rope-long-factors"):
            draw.add(name, ",".join(f"{draw.random.uniform(1, 6):.3f}" for _ in range(rotated_pairs(values))))
    if "--rotary-scaling-factor" in values:
        draw.maybe(0.3, "--yarn-attention-factor", 0.7, 1.3)
        draw.maybe(0.3, "--mscale", 0.7)
        draw.maybe(0.3, "--mscale-all-dim", 0.5)
    elif values.get("--rope-scaling-type") == ["llama3"]:
        draw.add("--rope-low-freq-factor", draw.pick(1, 2))
        draw.add("--rope-high-freq-factor", draw.pick(3, 8))


def draw_numbers(draw, values):
    draw.maybe(0.1, "--init-method-std", 0.1)
    draw.maybe(0.1, "--norm-epsilon", 1e-3)
    if "--mtp-num-layers" in values:
        draw.maybe(0.3, "--mtp-loss-scaling-factor", 0.5)
    if "--moe-router-enable-expert-bias" in values:
        draw.maybe(0.4, "--moe-router-bias-update-rate", 0, 0.05)
    draw.maybe(0.15, "--eod-token", 10, 32)


def draw_updates(draw, values):
    """Coefficients of the optimizer."""
    optimizer = values.get("--optimizer", ["adamw"])[0]
    if optimizer in ("adamw", "muon"):
        draw.maybe(0.2, "--adam-beta1", 0, 0.8)
        draw.maybe(0.2, "--adam-eps", 1e-3)
    if optimizer == "muon":
        draw.maybe(0.3, "--muon-momentum", 0.5)
        draw.maybe(0.3, "--no-muon-use-nesterov")
        draw.maybe(0.3, "--muon-ns-dtype", "bf16")
    if optimizer == "lion":
        draw.maybe(0.3, "--lion-beta1", 0.5)


def draw_machine(draw):
    draw.maybe(0.2, "--threads-per-rank", 2)
    draw.maybe(0.15, "--transport", "tcp")
    draw.maybe(0.2, "--canonical-reductions")
    draw.maybe(0.15, "--deterministic")
    draw.maybe(0.2, "--zero-debug")


def draw_hardware(draw):
    draw.maybe(0.4, "--hardware", "a100-80", "a100-40", "h200", "h800", "b200", "gb200", "l40s", "rtx-pro-6000")


def draw_learning_rates(draw):
    if draw.chance(0.4):
        draw.add("--lr-decay-style", draw.pick("constant", "linear", "inverse-square-root", "WSD", "exponential"))
    draw.maybe(0.2, "--min-lr", 1e-4)
    draw.maybe(0.2, "--lr-warmup-fraction", 0.3)


def draw_recipe(draw, precision):
    """Options of a recipe that quantizes."""
    if "--precision-recipe" not in precision:
        return
    recipe = precision[precision.index("--precision-recipe") + 1]
    if recipe.startswith("fp8") or recipe == "deepseek_v3":
        draw.maybe(0.3, "--fp8-format", "e4m3", "hybrid")
        draw.maybe(0.3, "--fp8-accumulation", "hopper", "hopper_promoted")
    if recipe == "fp8_delayed":
        draw.maybe(0.4, "--fp8-amax-history-len", 1, 3)
        draw.maybe(0.4, "--fp8-amax-compute-algo", "most_recent")
    if recipe == "deepseek_v3":
        draw.maybe(0.4, "--quantization-block-size", 16, 64)


def rare_flags(seed, flags, precision=()):
    """What is added to the flags of a model and its layout, and to those of its precision."""
    draw, values = Draw(f"{seed}, rare"), values_of(flags)
    draw_positions(draw, values)
    draw_numbers(draw, values)
    draw_updates(draw, values)
    draw_machine(draw)
    draw_hardware(draw)
    draw_learning_rates(draw)
    draw_recipe(draw, list(precision))
    # Math threads of many ranks wait for each other's processors, which takes long.
    few = values.get("--world-size") in (["1"], ["2"])
    return [flag for flag in draw.flags if few or flag[0] != "--threads-per-rank"]
