#!/usr/bin/env python3
"""Random small models on random layouts, each held to what must be the same.

    tests/random/random_runs.py PROGRAM CHECK [--first SEED] [--runs N]

parity  every tensor of the layout is one rank's (ranklab parity, fp64)
plan    a step takes as long as its dry run says, within the tolerance that this states
memory  each stage's fullest rank holds at its peak what plan memory says, likewise
resume  training that goes on from a checkpoint on another layout has the losses of training that never stopped, and there
        generates the text that one rank generates
launch  ranks that are processes (ranklab launch) have the metrics of ranks that are threads, bit for bit
gpu     ranks that are threads on one GPU compute what they do on the host, in the same virtual time; without a GPU PROGRAM is
        tests/cuda/stand_in/ranklab.sh
watched a run that is watched (sentinels, traces, dumps, checkpoints, validation) computes and takes what it does alone
types   every tensor of a step, followed on numbers, is reduced over the ranks that used it (train --check-gradient-types)

Ends with 1, and the commands that show it, where one is not. A seed whose settings do not fit together is drawn again.
"""
import argparse
import json
import math
import os
import shlex
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

from random_flags import Draw, draw_layout, draw_model, scaled, with_diloco, with_expert_overlap, with_gather_overlap, with_groups, with_growing_batch, with_more_microbatches, with_padded_experts, with_tensor_overlap, words
from rare_flags import rare_flags

REFUSED = 2  # the program's exit code for settings that do not fit together
MOST_DRAWS = 40


class Different(Exception):
    """What two runs should have had in common; the commands tell which."""


class Refused(Exception):
    pass


class Program:
    def __init__(self, path, folder):
        self.path, self.folder, self.commands = path, folder, []

    def run(self, *arguments):
        command = [self.path, *arguments]
        self.commands.append(shlex.join(command))
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=300)
        if done.returncode == REFUSED:
            raise Refused(done.stderr.strip())
        if done.returncode != 0:
            raise Different(f"exit code {done.returncode}: {done.stderr.strip()[-600:] or done.stdout.strip()[-600:]}")
        return done.stdout

    def data(self, *arguments):
        return json.loads(self.run(*arguments, "--json"))["data"]

    def steps(self, *arguments):
        lines = map(json.loads, self.run("train", *arguments, "--json", "--sample-tokens", "0", "--eval-interval", "0", "--no-trace").splitlines())
        return [line for line in lines if "virtual_step_ms" in line]


def drawn(seed):
    """A model and one layout of it, with a batch that fits."""
    draw = Draw(seed)
    dp = draw_layout(draw, *draw_model(draw))
    sequences, microbatches = draw.pick(1, 2), draw.pick(1, 2, 4, 8)
    draw.add("--mbs", sequences)
    draw.add("--num-microbatches", microbatches)
    draw.add("--gbs", dp * sequences * microbatches)
    flags, apart = [*draw.flags, ["--mock-data"], ["--seed", str(seed)]], Draw(-1 - seed)
    replicas = [number for number in (2, 3, 4) if dp % number == 0]
    if replicas and apart.chance(0.25):
        flags = with_diloco(apart, flags, apart.pick(*replicas))
    flags = with_expert_overlap(apart, with_groups(apart, flags, microbatches))
    return draw, with_tensor_overlap(apart, with_padded_experts(apart, with_gather_overlap(apart, flags)))


def draw_precision(draw):
    if draw.chance(0.3):
        return draw.pick(["--bf16"], ["--fp16", "--loss-scale", "64"], ["--params-dtype", "fp32"])
    if draw.chance(0.2):
        return ["--bf16", *draw.pick(["--exp-avg-dtype", "bf16", "--exp-avg-sq-dtype", "bf16"], ["--main-grads-dtype", "bf16"], ["--main-params-dtype", "bf16"])]
    recipe = draw.pick("fp8_delayed", "fp8_current", "fp8_rowwise", "deepseek_v3", "mxfp8", "nvfp4", "mxfp4")
    narrowed = draw.pick([], [], ["--low-precision-include", "*.mlp.*"], ["--low-precision-exclude", "layers.0.*"], ["--module-compute-dtype-rule", "*.attention.out=bf16"])
    return ["--precision-recipe", recipe, *narrowed, *draw.pick([], ["--no-fp8-param-gather"], ["--low-precision-dispatch"])]


def metrics_of(folder):
    """Of each step what the machine's speed does not change."""
    wall = {"tokens_per_s", "step_wall_ms"}
    with open(f"{folder}/metrics.jsonl") as lines:
        return [{key: value for key, value in json.loads(line).items() if key not in wall} for line in lines]


def rare_in_fp64(seed, flags):
    """Without Newton-Schulz steps in bf16, which are not compared to the digits of fp64."""
    return words(flag for flag in rare_flags(seed, flags) if flag[0] != "--muon-ns-dtype")


def check_parity(program, seed):
    _, flags = drawn(seed)
    program.run("parity", "--no-narrow", "--params-dtype", "fp64", *words(flags), *rare_in_fp64(seed, flags))


def check_types(program, seed):
    draw, flags = drawn(seed)
    precision = draw_precision(draw)
    program.steps(*words(flags), *precision, *words(rare_flags(seed, flags, precision)), "--train-iters", "1", "--check-gradient-types")


def plan_tolerance(arguments, stated):
    """A plan runs the same code. So it is exact, unless the kernels of a step follow from numbers (which tokens an expert has, which
    heads are clipped), or outer updates and the passes of many microbatches are averaged; then what it states."""
    averaged = {"--num-experts", "--qk-clip", "--diloco-sync-steps"}
    few = int(arguments[arguments.index("--num-microbatches") + 1]) <= 8
    return stated if averaged & set(arguments) or not few else min(stated, 1e-4)


def check_plan(program, seed):
    draw, flags = drawn(seed)
    flags = with_more_microbatches(Draw(-2 - seed), flags)
    # Plans are of steps whose gradients are clipped.
    precision = draw_precision(draw)
    arguments = [*words(flags), "--clip-grad", "0.001", *precision, "--efficiency", draw.pick("datasheet", "measured"), *words(rare_flags(seed, flags, precision))]
    estimate = program.data("train", *arguments, "--dry-run")["estimate"]
    # Outer updates of DiLoCo are averaged over the steps between them.
    period = next((int(flag[1]) for flag in flags if flag[0] == "--diloco-sync-steps"), 1)
    steps = program.steps(*arguments, "--train-iters", str(period + 1))[1:]
    planned, ran = estimate["virtual_step_ms"], sum(step["virtual_step_ms"] for step in steps) / period
    tolerance = plan_tolerance(arguments, estimate["tolerance"])
    if abs(planned / ran - 1) > tolerance:
        raise Different(f"a step is planned to take {planned} ms and takes {ran} (tolerance {tolerance})")


def check_memory(program, seed):
    draw, flags = drawn(seed)
    flags = with_more_microbatches(Draw(-2 - seed), flags)
    balanced = ["--moe-router-force-load-balancing"] if any(flag[0] == "--num-experts" for flag in flags) else []
    precision = draw_precision(draw)
    for rank in program.data("plan", "memory", *words(scaled(flags, 4)), *balanced, *precision, *words(rare_flags(seed, flags, precision)), "--measure")["ranks"]:
        if abs(rank["measured"]["difference_percent"]) > 100 * rank["tolerance"]:
            raise Different(f"stage {rank['pp_rank']} is planned to hold {rank['at_peak']} and holds {rank['measured']['at_peak']}")


def draw_growth(draw, dp):
    """A batch that grows to 12 sequences, by what divides over both layouts; a schedule of the learning rate in sequences."""
    part = math.lcm(*dp)
    starts = [start for start in range(part, 12, part) if (12 - start) % part == 0]
    draw.flags = []
    if starts and draw.chance(0.3):
        draw.add("--rampup-batch-size", f"{draw.pick(*starts)} {part} {draw.pick(6, 12, 24)}")
    if draw.chance(0.3):
        draw.add("--lr-warmup-samples", draw.pick(0, 7, 12))
        draw.add("--lr-decay-samples", draw.pick(20, 40))
    return words(draw.flags)


def check_resume(program, seed):
    draw = Draw(seed)
    sizes = draw_model(draw)
    model = [*words(draw.flags), "--mock-data", "--seed", str(seed), *rare_in_fp64(seed, draw.flags)]
    if "global_aux_loss" in model:
        raise Refused("this loss is of what all data-parallel ranks' microbatches have together, so layouts differ")
    drawn_layouts, dp = [], []
    for _ in range(2):
        draw.flags = []
        dp.append(draw_layout(draw, *sizes))
        drawn_layouts.append(draw.flags)
    if dp[0] % 2 == 0 and dp[1] % 2 == 0 and Draw(-1 - seed).chance(0.5):
        drawn_layouts = [with_diloco(Draw(-1 - seed), flags, 2) for flags in drawn_layouts]
    layouts = [words(flags) for flags in drawn_layouts]
    shared = [*model, "--params-dtype", "fp64", "--gbs", "12", "--mbs", "1", "--train-iters", "4", *draw_growth(Draw(-2 - seed), dp)]
    for layout in layouts:
        program.run("train", *shared, *layout, "--dry-run")
    folder = tempfile.mkdtemp(dir=program.folder)
    whole = program.steps(*shared, *layouts[0], "--save", f"{folder}/first", "--save-interval", "2")
    half = sorted(name for name in os.listdir(f"{folder}/first") if name.startswith("step"))[0]
    rest = program.steps(*shared, *layouts[1], "--load", f"{folder}/first/{half}", "--save", f"{folder}/second")
    for went_on, began_again in zip(whole[2:], rest, strict=True):
        for key in ("loss", "grad_norm"):
            if abs(went_on[key] - began_again[key]) > 1e-9 * abs(went_on[key]):
                raise Different(f"{key} of step {went_on['step']} is {began_again[key]}, and was {went_on[key]}")
    asked = ["generate", "--load", f"{folder}/second", "--prompt", "The old man", "--tokens", "16", "--temperature", "0"]
    kept = {"--world-size", "--tp", "--cp", "--pp", "--dp", "--ep", "--etp", "--cp-comm-type", "--cp-balance", "--zero-stage", "--no-sp"}
    layout = words(flag for flag in draw.flags if flag[0] in kept)
    one, several = program.data(*asked)["tokens"], program.data(*asked, *layout)["tokens"]
    if one != several:
        raise Different(f"one rank generates {one}, and the layout {several}")


def check_launch(program, seed):
    draw, flags = drawn(seed)
    flags = with_growing_batch(Draw(-2 - seed), flags)
    precision = draw_precision(draw) if draw.chance(0.4) else []
    shared = [*words(flags), *precision, *words(rare_flags(seed, flags, precision)), "--train-iters", "3", "--lr-warmup-iters", "0", "--sample-tokens", "0", "--eval-interval", "2", "--eval-iters", "1", "--no-trace"]
    ranks = next(flag[1] for flag in flags if flag[0] == "--world-size")
    program.run("train", *shared, "--log-dir", "threads")
    program.run("launch", "--nproc-per-node", ranks, *shared, "--log-dir", "processes")
    threads, processes = (metrics_of(f"{program.folder}/{kind}") for kind in ("threads", "processes"))
    for one, other in zip(threads, processes, strict=True):
        keys = [key for key in one | other if one.get(key) != other.get(key)]
        if keys:
            raise Different(f"step {one['step']} has other metrics: " + ", ".join(f"{key} {one.get(key)} and {other.get(key)}" for key in keys))


def draw_watching(draw, folder):
    """What looks at a run, or writes of it, and does not take part."""
    draw.flags = []
    draw.maybe(0.4, "--sentinel-mode", "minimal", "standard", "debug")
    draw.maybe(0.3, "--sentinel-interval", 1, 2)
    draw.maybe(0.3, "--sentinel-drift-interval", 1, 2)
    draw.maybe(0.4, "--watch", 1, 2)
    draw.maybe(0.3, "--check-calls")
    draw.maybe(0.3, "--check-gradient-types")
    draw.maybe(0.3, "--precision-stats-interval", 0, 1)
    draw.maybe(0.3, "--tensorboard-dir", f"{folder}/board")
    draw.maybe(0.3, "--sentinel-histogram-interval", 1)
    if draw.chance(0.3):
        draw.add("--dump", draw.pick("layers.0.*", "*.mlp", "*"))
        draw.maybe(0.5, "--at", "step=1..2", "step=1 microbatch=0", "pass=backward")
    if draw.chance(0.3):
        draw.add("--save", f"{folder}/saved")
        draw.add("--save-interval", draw.pick(1, 2))
        draw.maybe(0.5, "--async-save")
    if draw.chance(0.6):
        draw.add("--trace-level", draw.pick("step", "action", "module", "kernel"))
    else:
        draw.add("--no-trace")
    draw.add("--eval-interval", draw.pick(0, 1, 2))
    draw.maybe(0.5, "--eval-iters", 1, 2)
    draw.maybe(0.2, "--collectives", "gloo", "direct")
    return draw.flags


# Sentinels and validation hold what they read, and a parameter that they need is gathered before the step that would have overlapped it.
TIMES = {"virtual_step_ms", "mfu", "exposed_comm_fraction", "peer_wait_fraction", "peak_memory_bytes"}


def check_watched(program, seed):
    draw, flags = drawn(seed)
    flags = with_growing_batch(Draw(-2 - seed), flags)
    precision = draw_precision(draw) if draw.chance(0.5) else []
    shared = [*words(flags), *precision, *words(rare_flags(seed, flags, precision)), "--train-iters", "4", "--lr-warmup-iters", "0", "--sample-tokens", "0"]
    watching = draw_watching(draw, tempfile.mkdtemp(dir=program.folder))
    program.run("train", *shared, "--eval-interval", "0", "--no-trace", "--log-dir", "alone")
    try:
        program.run("train", *shared, *words(watching), "--log-dir", "watched")
    except Different as ended:
        if "a sentinel ended the run" in str(ended):
            raise Refused("it does not get to its end") from ended
        raise
    alone, watched = ([step for step in metrics_of(f"{program.folder}/{kind}") if "virtual_step_ms" in step] for kind in ("alone", "watched"))
    for one, other in zip(alone, watched, strict=True):
        keys = [key for key in one if key not in TIMES and one[key] != other.get(key)]
        if keys:
            raise Different(f"step {one['step']} has other metrics: " + ", ".join(f"{key} {one[key]} and {other.get(key)}" for key in keys))


def check_gpu(program, seed):
    draw, flags = drawn(seed)
    narrow = draw.chance(0.4)
    precision = draw_precision(draw) if narrow else ["--params-dtype", "fp64"]
    kernel = ["--attention-backend", draw.pick("fused", "flash")] if narrow and draw.chance(0.5) else []
    shared = [*words(flags), *precision, *kernel, "--train-iters", "3", "--lr-warmup-iters", "0"]
    host, gpu = (program.steps(*shared, "--device", device) for device in ("cpu", "cuda"))
    # The GPU's kernels round narrow numbers in other places, after which updates differ by more and more.
    exact, coarse = {"loss": 1e-7, "grad_norm": 1e-6, "virtual_step_ms": 0}, {"loss": 2e-2, "grad_norm": 2e-1}
    for one, other in zip(host, gpu, strict=True):
        for key, share in (coarse if narrow else exact).items():
            if not abs(one[key] - other[key]) <= share * abs(one[key]) * (1 + one["step"] if narrow else 1):
                raise Different(f"{key} of step {one['step']} is {one[key]} on the host and {other[key]} on the GPU")


CHECKS = {"gpu": check_gpu, "parity": check_parity, "types": check_types, "launch": check_launch, "watched": check_watched, "plan": check_plan, "memory": check_memory, "resume": check_resume}


def run_one(program, check, number):
    """None, or what is different and the commands that show it."""
    with tempfile.TemporaryDirectory() as folder:
        for attempt in range(MOST_DRAWS):
            tried = Program(program, folder)
            try:
                CHECKS[check](tried, number * MOST_DRAWS + attempt)
                return None
            except Refused:
                continue
            except (Different, subprocess.TimeoutExpired) as found:
                return "\n    ".join([f"{check}, run {number}: {found}", *tried.commands])
    return f"{check}, run {number}: all of {MOST_DRAWS} settings were refused, which says something of how they are drawn"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("check", choices=CHECKS)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="runs at a time")
    asked = parser.parse_args()
    wrong = 0
    with ThreadPoolExecutor(asked.jobs) as pool:
        numbers = range(asked.first, asked.first + asked.runs)
        for found in pool.map(lambda number: run_one(os.path.abspath(asked.program), asked.check, number), numbers):
            if found:
                wrong += 1
                print(found, flush=True)
    print(f"{asked.check}: {asked.runs - wrong} of {asked.runs} random runs are as they must be")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
