"""Holds the losses and gradient norms of a run to those of another. The
first STEPS steps (default: all) are held to RELATIVE, gradient norms to ten times that, the last loss to 1 %.
curve.py RUN.jsonl REFERENCE.jsonl RELATIVE [STEPS]"""
import json
import sys


def steps_of(path):
    with open(path) as file:
        records = [json.loads(line) for line in file if line.startswith("{")]
    return {r["step"]: r for r in records if "loss" in r and "step" in r}


def main():
    run, reference = steps_of(sys.argv[1]), steps_of(sys.argv[2])
    bound = float(sys.argv[3])
    held = int(sys.argv[4]) if len(sys.argv) > 4 else len(run)
    if not run or run.keys() != reference.keys():
        sys.exit("error: %d steps, the reference has %d" % (len(run), len(reference)))
    worst = {"loss": (0.0, 0), "grad_norm": (0.0, 0)}
    for step, ours in sorted(run.items())[:held]:
        for key in worst:
            theirs = reference[step][key]
            worst[key] = max(worst[key], (abs(ours[key] - theirs) / max(abs(theirs), 1e-12), step))
    print("loss differs by %.2e at step %d, gradient norm by %.2e at step %d (last losses %.6f, %.6f)"
          % (*worst["loss"], *worst["grad_norm"], run[max(run)]["loss"], reference[max(run)]["loss"]))
    last = abs(run[max(run)]["loss"] / reference[max(run)]["loss"] - 1)
    if last > 1e-2:
        sys.exit("error: the last loss differs by %.2e; want 1e-2" % last)
    if worst["loss"][0] > bound or worst["grad_norm"][0] > 10 * bound:
        sys.exit("error: the loss differs by %.2e, the gradient norm by %.2e; want %.0e and %.0e"
                 % (worst["loss"][0], worst["grad_norm"][0], bound, 10 * bound))


main()
