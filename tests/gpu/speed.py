"""Median figures of the later half of a run's steps, noted for the kit's report. speed.py RUN.jsonl"""
import json
import os
import statistics
import sys


def main():
    with open(sys.argv[1]) as file:
        steps = [r for r in map(json.loads, (line for line in file if line.startswith("{"))) if "tokens_per_s" in r]
    later = steps[len(steps) // 2:]
    if not later:
        sys.exit("error: no step was logged")
    figures = [("tokens/s", "tokens_per_s", 1, ""), ("step", "step_wall_ms", 1, "ms"), ("MFU", "wall_mfu", 100, "%"),
               ("peak memory", "peak_memory_bytes", 2**-30, "GiB"), ("virtual step", "virtual_step_ms", 1, "ms")]
    with open(os.environ["RANKLAB_GPU_FIGURES"], "a") as out:
        for label, key, factor, unit in figures:
            values = [r[key] * factor for r in later if r.get(key)]
            if values:
                text = "%.4g" % statistics.median(values)
                out.write("\t".join((os.environ["STEP"], label, text, unit)) + "\n")
                print(label, text, unit)


main()
