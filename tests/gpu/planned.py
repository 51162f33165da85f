"""A plan's step beside the median of a run's later steps; fails where they are far apart.
ranklab plan run ... --json | planned.py RUN.jsonl"""
import json
import sys

from speed import later_steps, median, note

FAR = 0.25


def main():
    planned = json.load(sys.stdin)["data"]["estimate"]["virtual_step_ms"]
    measured = median(later_steps(sys.argv[1]), "step_wall_ms")
    note([("planned step", planned, "ms"), ("planned / measured", planned / measured, "")])
    if abs(planned / measured - 1) > FAR:
        sys.exit("error: the plan says %.1f ms, the run took %.1f" % (planned, measured))


main()
