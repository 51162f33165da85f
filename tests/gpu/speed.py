"""Median figures of the later half of a run's steps, noted for the kit's report. speed.py RUN.jsonl"""
import json
import os
import statistics
import sys


def later_steps(path):
    with open(path) as file:
        steps = [r for r in map(json.loads, (line for line in file if line.startswith("{"))) if "tokens_per_s" in r]
    if not steps:
        sys.exit("error: no step was logged")
    return steps[len(steps) // 2:]


def note(figures):
    """Of (label, value, unit): for the kit's report, and printed."""
    with open(os.environ["RANKLAB_GPU_FIGURES"], "a") as out:
        for label, value, unit in figures:
            text = "%.4g" % value
            out.write("\t".join((os.environ["STEP"], label, text, unit)) + "\n")
            print(label, text, unit)


def median(steps, key, factor=1):
    values = [r[key] * factor for r in steps if r.get(key)]
    return statistics.median(values) if values else None


def main():
    later = later_steps(sys.argv[1])
    figures = [("tokens/s", "tokens_per_s", 1, ""), ("step", "step_wall_ms", 1, "ms"), ("MFU", "wall_mfu", 100, "%"),
               ("peak memory", "peak_memory_bytes", 2**-30, "GiB"), ("virtual step", "virtual_step_ms", 1, "ms")]
    found = [(label, median(later, key, factor), unit) for label, key, factor, unit in figures]
    note([row for row in found if row[1] is not None])


if __name__ == "__main__":
    main()
