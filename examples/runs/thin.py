"""Thins the metrics of a run: a line stands for so many steps, its loss and gradient norm are their means.

    python3 examples/runs/thin.py RUN/metrics.jsonl 8 > examples/runs/gpt_10m/metrics.jsonl
"""
import json
import sys

KEPT = ("loss", "grad_norm", "lr")


def main():
    path, every = sys.argv[1], int(sys.argv[2])
    lines = [json.loads(line) for line in open(path, encoding="utf-8")]
    steps = {line["step"]: line for line in lines if "loss" in line}  # if a resumed run logged a step twice, the later line
    validations = {line["step"]: line for line in lines if "validation_loss" in line}
    group = []
    for step in sorted(steps):
        group.append(steps[step])
        if len(group) == every or step == max(steps):
            means = {name: sum(line[name] for line in group) / len(group) for name in KEPT}
            means["lr"] = group[-1]["lr"]
            print(json.dumps({"step": step, **{name: float(f"{value:.6g}") for name, value in means.items()}}))
            group = []
        if step in validations:
            print(json.dumps({"step": step, "validation_loss": float(f"{validations[step]['validation_loss']:.6g}")}))


main()
