"""result.json and result.md of a run of the proof kit, from its rows and figures. report.py OUT --gpu NAME --commit HASH"""
import argparse
import datetime
import json
import os
import subprocess


def read_rows(path, names):
    with open(path) as file:
        return [dict(zip(names, line.rstrip("\n").split("\t"))) for line in file if line.strip()]


def output_of(*command):
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=20).stdout.strip()
    except (OSError, subprocess.TimeoutExpired):
        return ""


def write(result, folder, name="result"):
    """NAME.json and NAME.md."""
    with open(os.path.join(folder, name + ".json"), "w") as file:
        json.dump(result, file, indent=1)
        file.write("\n")
    steps, figures = result["steps"], result["figures"]
    count = {outcome: sum(step["outcome"] == outcome for step in steps) for outcome in ("pass", "fail", "skip")}
    lines = ["# %(gpu)s, commit %(commit)s, %(date)s" % result, "",
             "%(pass)d passed, %(fail)d failed, %(skip)d skipped." % count, ""]
    lines += [result["note"], ""] if result.get("note") else []
    lines += ["| part | step | outcome | seconds | reason |", "|---|---|---|---|---|"]
    lines += ["| %(part)s | %(name)s | %(outcome)s | %(seconds)s | %(reason)s |" % step for step in steps]
    if figures:
        lines += ["", "| step | figure | value |", "|---|---|---|"]
        lines += ["| %(step)s | %(name)s | %(value)s %(unit)s |" % f for f in figures]
    with open(os.path.join(folder, name + ".md"), "w") as file:
        file.write("\n".join(lines) + "\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("out")
    parser.add_argument("--gpu", required=True)
    parser.add_argument("--commit", required=True)
    args = parser.parse_args()
    steps = read_rows(os.path.join(args.out, "rows.tsv"), ("part", "name", "outcome", "seconds", "reason"))
    figures = read_rows(os.path.join(args.out, "figures.tsv"), ("step", "name", "value", "unit"))
    result = {
        "gpu": args.gpu,
        "commit": args.commit,
        "date": datetime.date.today().isoformat(),
        "time": datetime.datetime.now().strftime("%H:%M"),
        "driver": output_of("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader").split("\n")[0],
        "steps": steps,
        "figures": figures,
    }
    write(result, args.out)


if __name__ == "__main__":
    main()
