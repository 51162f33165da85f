"""Rows for `ranklab plan validate` from the committed results: what the proof kit measured beside what the planner says,
to which none of this was fitted but two runs of llama_1b on an H100. Of each GPU, model, recipe and batch the newest, whatever
its number of layers, since kernels have become faster. own_runs.py > rows.json"""
import json
import re
import sys

from proven import figure, results

LLAMA = {"heads": 32, "kv_heads": 8, "vocab": 128256, "seq": 8192, "gpus": 1, "micro_batch": 1, "framework": "ranklab"}
SHAPES = {"llama_1b": {"model": "Llama 3.2 1B", "layers": 16, "hidden": 2048, "ffn": 8192, "tied": True},
          "llama_8b": {"model": "Llama 3.1 8B", "hidden": 4096, "ffn": 14336}}
PRECISIONS = {"bf16": "bf16", "fp8_current": "fp8", "fp8_rowwise": "fp8 rowwise", "deepseek_v3": "fp8 1x128"}
STEPS = [re.compile(pattern) for pattern in (
    r"(?P<model>llama_1b) (?P<recipe>bf16), (?P<batch>a|8) sequences? a step$",
    r"(?P<model>llama_8b), (?P<layers>\d+) layers, (?:(?P<batch>4) sequences a step, )?(?P<recipe>\w+)(?P<wide> with fp32 gradients)?$")]


def config_of(step, gpu):
    """None where the step is no run that the planner can be asked for."""
    match = next(filter(None, (pattern.match(step) for pattern in STEPS)), None)
    if not match or match["recipe"] not in PRECISIONS:
        return None
    found = match.groupdict()
    config = {**LLAMA, **SHAPES[found["model"]], "gpu_type": gpu, "precision": PRECISIONS[found["recipe"]],
              "global_batch": int(found["batch"]) if (found["batch"] or "a") != "a" else 1}
    if "layers" in found:
        config["layers"] = int(found["layers"])
    if found.get("wide"):
        config["gradients"] = "fp32"
    return config


def rows():
    seen = {}
    for result in results():  # newest first
        gpu = result["gpu"].replace("NVIDIA ", "").split()[0]
        for step in [s["name"] for s in result["steps"]]:
            config, ms, gib = config_of(step, gpu), figure(result, step, "step"), figure(result, step, "peak memory")
            kind = (gpu, re.sub(r"\d+ layers", "layers", step))
            if config and ms and kind not in seen:
                seen[kind] = {"id": step.replace(",", "").replace(" ", "-"), "source": "tests/gpu on " + gpu, "config": config,
                                   "measured": {"step_time_s": ms / 1e3, "peak_memory_GiB": gib}}
    return [seen[key] for key in sorted(seen)]


if __name__ == "__main__":
    json.dump(rows(), sys.stdout, indent=1)
