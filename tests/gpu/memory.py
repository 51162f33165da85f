"""Holds the peak memory of a run to that of another. memory.py RUN.jsonl REFERENCE.jsonl (--within SHARE | --more-gib GIB)"""
import sys

from speed import later_steps, note


def peak(path):
    peaks = [r["peak_memory_bytes"] for r in later_steps(path) if r.get("peak_memory_bytes")]
    return max(peaks) if peaks else sys.exit("error: %s names no memory" % path)


def main():
    run, reference = peak(sys.argv[1]), peak(sys.argv[2])
    how, limit = sys.argv[3], float(sys.argv[4])
    note([("peak memory", run / 2**30, "GiB"), ("of the reference", reference / 2**30, "GiB")])
    if how == "--within" and abs(run / reference - 1) > limit:
        sys.exit("error: the peaks differ by %.0f %%; want %.0f %%" % (100 * abs(run / reference - 1), 100 * limit))
    if how == "--more-gib" and run - reference > limit * 2**30:
        sys.exit("error: the peak is %.2f GiB above the other's; want %.2f" % ((run - reference) / 2**30, limit))


main()
