"""The tables in docs/gpus.md of GPUs on which the proof kit ran, made from the committed results.
proven.py            print the tables
proven.py docs/gpus.md  fail unless the file holds just these tables, so that it never claims more than a result shows"""
import glob
import json
import os
import sys

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "results")
ONE, EIGHT = "llama_1b bf16, a sequence a step", "llama_1b bf16, 8 sequences a step"
FP8 = [("fp8_current",), ("fp8_current", "4 sequences a step, "), ("fp8_current, sums of Hopper's units",),
       ("fp8_rowwise",), ("deepseek_v3",)]
PEERS = ["PyTorch %s, llama_1b, a sequence a step" % kind for kind in ("eager", "compiled")]


def results():
    """Newest first."""
    read = []
    for path in glob.glob(os.path.join(FOLDER, "*.json")):
        with open(path) as file:
            read.append(json.load(file))
    return sorted(read, key=lambda r: (r["date"], r["time"]), reverse=True)


def parts_text(result, part):
    outcomes = [step["outcome"] for step in result["steps"] if step["part"] == part and step["outcome"] != "skip"]
    return "%d of %d" % (outcomes.count("pass"), len(outcomes)) if outcomes else "not run"


def speed_text(result, step):
    figures = {f["name"]: f["value"] for f in result["figures"] if f["step"] == step}
    return "{:,.0f}, MFU {} %".format(float(figures["tokens/s"]), figures["MFU"]) if "MFU" in figures else "-"


def figure(result, step, name):
    """A number; None if the step has none or did not end well."""
    if not any(s["name"] == step and s["outcome"] == "pass" for s in result["steps"]):
        return None
    return next((float(f["value"]) for f in result["figures"] if f["step"] == step and f["name"] == name), None)


def times(result, step, of):
    """How many times as fast one step is as another, in tokens a second."""
    one, other = figure(result, step, "tokens/s"), figure(result, of, "tokens/s")
    return "%.2f" % (one / other) if one and other else "-"


def fp8_times(result, recipe, batch=""):
    """Beside bf16 with the same layers and gradients; an older kit ran bf16 with gradients in bf16 alone (*)."""
    for step in {f["step"] for f in result["figures"]}:
        if step.startswith("llama_8b, ") and step.endswith(" layers, " + batch + recipe):
            beside = step[:-len(recipe)] + "bf16"
            fair = times(result, step, beside + " with fp32 gradients")
            return fair if fair != "-" else times(result, step, beside) + "*"
    return "-"


def rows_text(head, rows):
    lines = [head, "|" + "---|" * (head.count("|") - 1)]
    return "\n".join(lines + ["| " + " | ".join(cells) + " |" for cells in rows]) + "\n"


def times_table():
    rows = []
    for r in results():
        cells = [times(r, "gpt_10m bf16, 8 sequences a step, CUDA graph", "gpt_10m bf16, 8 sequences a step"),
                 times(r, "llama_1b, 3 layers, 8 rank threads, dp 8", "llama_1b, 3 layers, one rank thread"),
                 *(fp8_times(r, *kind) for kind in FP8)]
        if any(cell != "-" for cell in cells):
            rows.append([r["gpu"], r["date"] + ", " + r["commit"], *cells])
    return rows_text("| GPU | when, commit | CUDA graph, gpt_10m | 8 rank threads, of one with the same batch "
                     "| llama_8b in fp8_current, of bf16 | 4 sequences a step | Hopper's sums | fp8_rowwise | deepseek_v3 |",
                     rows)


def table():
    if not results():
        return "Not yet proven on a GPU.\n"
    rows = []
    for r in results():
        rows.append([r["gpu"], r["date"] + ", " + r["commit"], *(parts_text(r, part) for part in "ABC"),
                     *(speed_text(r, step) for step in (ONE, EIGHT, *PEERS))])
    return rows_text("| GPU | when, commit | one rank | ranks over NCCL | rank threads, speed | llama_1b in bf16, "
                     "tokens/s: a sequence a step | 8 sequences | PyTorch eager, a sequence | PyTorch compiled |",
                     rows) + "\nTimes as fast (tokens/s; *: bf16 with gradients in bf16, FP8 with gradients in fp32):\n\n" + times_table()


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


if __name__ == "__main__":
    main()
