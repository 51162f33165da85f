"""The README's table of GPUs on which the proof kit ran, made from the newest committed result of each.
proven.py            print the table
proven.py README.md  fail unless the file holds just this table, so that it never claims more than a result shows"""
import glob
import json
import os
import sys

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "results")
SPEED = "llama_1b bf16, 8 sequences a step"


def newest_by_gpu():
    newest = {}
    for path in sorted(glob.glob(os.path.join(FOLDER, "*.json"))):
        with open(path) as file:
            result = json.load(file)
        seen = newest.get(result["gpu"])
        if seen is None or (result["date"], result["time"]) > (seen["date"], seen["time"]):
            newest[result["gpu"]] = result
    return [newest[gpu] for gpu in sorted(newest)]


def parts_text(result, part):
    outcomes = [step["outcome"] for step in result["steps"] if step["part"] == part]
    if not outcomes:
        return "not run"
    passed = outcomes.count("pass")
    return "%d of %d" % (passed, len(outcomes))


def speed_text(result):
    figures = {f["name"]: f["value"] for f in result["figures"] if f["step"] == SPEED}
    return "%s, MFU %s %%" % (figures["tokens/s"], figures["MFU"]) if "MFU" in figures else "-"


def table():
    results = newest_by_gpu()
    if not results:
        return "Not yet proven on a GPU.\n"
    lines = ["| GPU | when, commit | one rank | ranks over NCCL | rank threads, speed | llama_1b in bf16, tokens/s |",
             "|---|---|---|---|---|---|"]
    for r in results:
        lines.append("| %s | %s, %s | %s | %s | %s | %s |" % (r["gpu"], r["date"], r["commit"], parts_text(r, "A"),
                                                             parts_text(r, "B"), parts_text(r, "C"), speed_text(r)))
    return "\n".join(lines) + "\n"


def main():
    if len(sys.argv) == 1:
        print(table(), end="")
        return
    with open(sys.argv[1]) as file:
        text = file.read()
    begin, end = "<!-- tests/gpu/proven.py -->\n", "<!-- end -->"
    held = text.split(begin)[1].split(end)[0] if begin in text else "no table"
    if held != table():
        sys.exit("%s holds\n%s\nand the results say\n%s\ndo: put the output of tests/gpu/proven.py between the marks" % (sys.argv[1], held, table()))


main()
