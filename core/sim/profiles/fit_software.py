#!/usr/bin/env python3
"""Fits what training software costs (core/sim/software.cpp, software_terms.cpp) to published runs, a half at a time.

    ranklab plan validate RUNS --json > rows.json
    python3 core/sim/profiles/fit_software.py [--seed N] rows.json ...

For each software on each kind of machine: by which factor each part of its plans has to grow (kernels by kind, exposed
communication, microseconds to launch a kernel) for step times to be as measured, fitted to a random half of the runs;
the error that this leaves on the other half, beside the error of the plans as they are; and what range of measured over
planned held nine of ten runs (and peaks of memory) of the half, and how many of the other. Factors of software with few
runs hardly leave 1.
Each fit begins at the constants in the sources, which were found with all runs in sight, and groups of four runs or
fewer are predicted by these as they are: what is left on other halves is thus a lower bound.
Nothing but the plans' own parts and the runs' times is read: no model, paper or layout has a constant of its own.
Needs Python alone. The factors multiply those in the sources; plan again and fit again, since parts hide each other.
"""
import argparse
import json
import math
import random
from collections import defaultdict

MACHINES = [("a100", "ampere"), ("h", "hopper"), ("gb", "blackwell rack"), ("b", "blackwell")]
PARTS = ["products", "low-bit products", "elementwise", "attention", "quantization", "exposed"]
# What a factor of e costs, in mean error of ten runs; of fewer runs more, so that three runs do not choose six factors.
TIMID = 0.03
STEPS = [1.5, 1.2, 1.07, 1.02]
HALVES = 16


def machine_of(profile):
    return next((machine for prefix, machine in MACHINES if profile.startswith(prefix)), profile)


def rows_of(path):
    with open(path) as file:
        rows = json.load(file)["data"]["rows"]
    out = []
    for row in rows:
        if "time_ratio" not in row:
            continue
        kernels = dict(row["kernels_ms"])
        waiting = row["launch_wait_ms"]
        planned = row["predicted_step_s"] * 1e3
        fixed = kernels.pop("loss") + row["beside_collectives_ms"] + row["pieces_ms"]
        parts = {**kernels, "exposed": row["exposed_ms"]}
        busy = sum(parts.values()) + fixed + waiting
        slowest = row["slowest_gpu_ms"] / (planned - row["slowest_gpu_ms"])
        out.append({"software": row["software"], "gpu": row["profile"], "machine": machine_of(row["profile"]),
                    "parts": parts, "fixed": fixed, "waiting": waiting, "launches": row["launches"],
                    "blocking": row.get("launch_blocking", False),
                    "stretch": (1 + row["pipeline_idle_ms"] / busy) * (1 + slowest), "planned": planned,
                    "measured": planned / row["time_ratio"], "id": row["id"]})
    return out


def planned_ms(row, factors, launch_us):
    kernels = row["fixed"] + sum(factors.get(part, 1) * ms for part, ms in row["parts"].items() if part != "exposed")
    waiting = row["waiting"]
    if launch_us is not None:
        waiting = max(0, row["launches"] * launch_us * 1e-3 - (0 if row["blocking"] else kernels))
    return (kernels + waiting + factors.get("exposed", 1) * row["parts"]["exposed"]) * row["stretch"]


def error_of(rows, factors, launch_us):
    return sum(abs(planned_ms(row, factors, launch_us) / row["measured"] - 1) for row in rows) / max(len(rows), 1)


def loss_of(rows, factors, launch_us):
    errors = [math.log(planned_ms(row, factors, launch_us) / row["measured"]) for row in rows]
    far = TIMID * sum(math.log(f) ** 2 for f in factors.values())
    return sum(min(abs(e), 0.5) for e in errors) / len(rows) + far * 10 / len(rows)


def fit(rows, launches):
    """Coordinate descent from factors of 1: the loss has corners, and few parameters."""
    used = [p for p in PARTS if any(row["parts"].get(p, 0) > 0.01 * row["planned"] for row in rows)]
    best = [1.0] * len(used) + ([1.0] if launches else [])

    def of(x):
        return dict(zip(used, x)), x[len(used)] if launches else None

    least = loss_of(rows, *of(best))
    for step in STEPS:
        moved = True
        while moved:
            moved = False
            for i in range(len(best)):
                for by in (step, 1 / step) if i < len(used) else (step**2, 1 / step**2):
                    tried = best[:i] + [best[i] * by] + best[i + 1:]
                    loss = loss_of(rows, *of(tried))
                    if loss < least - 1e-6:
                        best, least, moved = tried, loss, True
    return of(best)


def percentile(values, share):
    """Of as many values more would be below: for few values the widest there is, and a little more."""
    values = sorted(values)
    at = (len(values) + 1) * share
    if at < 1:
        return values[0] * 0.95
    return values[-1] * 1.05 if at > len(values) else values[min(round(at), len(values)) - 1]


def range_of(values):
    return percentile(values, 0.05), percentile(values, 0.95)


def halves_of(rows, seed):
    """Random halves: what is fitted, and the others."""
    for half in range(HALVES):
        order = list(rows)
        random.Random(seed * HALVES + half).shuffle(order)
        yield order[::2], order[1::2]


def held(values, others):
    """How many of others are in the range of values."""
    low, high = range_of(values)
    return sum(low <= value <= high for value in others)


def print_memory(paths, seed):
    """Of measured over planned peaks: the mean error of plans, and whether a half's range holds the other's."""
    ratios = defaultdict(list)
    for path in paths:
        with open(path) as file:
            for row in json.load(file)["data"]["rows"]:
                if "memory_ratio" in row:
                    ratios[row["software"]].append(1 / row["memory_ratio"])
    within = of = 0
    errors = []
    for software, values in sorted(ratios.items()):
        own = [abs(1 / value - 1) for value in values]
        errors += own
        low, high = range_of(values)
        print(f"{software:24s}{len(values):5d} peaks of memory, {100 * sum(own) / len(own):.1f} % off, nine of ten within "
              f"{low:.2f} to {high:.2f} of their plans")
        for fitted, others in halves_of(values, seed):
            within += held(fitted, others)
            of += len(others)
    if of:
        print(f"{len(errors)} peaks of memory, {100 * sum(errors) / len(errors):.1f} % off; the range of nine of ten of a "
              f"half held {100 * within / of:.0f} % of the other")


def main():
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("--seed", type=int, default=0, help="of the random halves")
    arguments.add_argument("--launches", action="store_true", help="fit microseconds a launch, too")
    arguments.add_argument("rows", nargs="+", help="what `ranklab plan validate --json` printed")
    asked = arguments.parse_args()
    groups = defaultdict(list)
    for path in asked.rows:
        for row in rows_of(path):
            groups[row["software"], row["machine"]].append(row)
    by_gpu = defaultdict(lambda: [[], []])
    within = [0, 0]
    ratios = defaultdict(list)
    print(f"{'software':24s}{'machine':16s}{'runs':>5s}{'now':>8s}{'all':>8s}{'other half':>12s}  factors")
    for (software, machine), rows in sorted(groups.items()):
        factors, launch_us = fit(rows, asked.launches)
        held_out = []
        for fitted, others in halves_of(rows, asked.seed):
            found = fit(fitted, asked.launches) if len(fitted) > 2 else ({}, None)
            held_out += [abs(planned_ms(row, *found) / row["measured"] - 1) for row in others]
            for row in others:
                by_gpu[row["gpu"]][1].append(abs(planned_ms(row, *found) / row["measured"] - 1))
            ratio = lambda row, found=found: row["measured"] / planned_ms(row, *found)
            within[0] += held(list(map(ratio, fitted)), list(map(ratio, others)))
            within[1] += len(others)
        for row in rows:
            by_gpu[row["gpu"]][0].append(abs(row["planned"] / row["measured"] - 1))
            ratios[software].append(row["measured"] / row["planned"])
        now = sum(abs(row["planned"] / row["measured"] - 1) for row in rows) / len(rows)
        text = ", ".join(f"{part} {factor:.2f}" for part, factor in factors.items())
        text += "" if launch_us is None else f", {launch_us:.1f} us a launch"
        other = 100 * sum(held_out) / len(held_out) if held_out else float("nan")
        print(f"{software:24s}{machine:16s}{len(rows):5d}{100 * now:7.1f}%"
              f"{100 * error_of(rows, factors, launch_us):7.1f}%{other:11.1f}%  {text}")
    print(f"\n{'gpu':40s}{'runs':>5s}{'now':>8s}{'other half':>20s}")
    for gpu, (now, other) in sorted(by_gpu.items()):
        mean = 100 * sum(other) / len(other) if other else float("nan")
        print(f"{gpu:40s}{len(now):5d}{100 * sum(now) / len(now):7.1f}%{mean:19.1f}%")
    print(f"\nthe range of nine of ten runs of a half held {100 * within[0] / max(within[1], 1):.0f} % of the other")
    for software, values in sorted(ratios.items()):
        low, high = range_of(values)
        print(f"{software:24s}{len(values):5d} runs, nine of ten within {low:.2f} to {high:.2f} of their plans")
    print_memory(asked.rows, asked.seed)


if __name__ == "__main__":
    main()
