"""Histograms that a run on eight ranks writes for TensorBoard, read by TensorBoard's own reader, are those of the same
run's weights and gradients on one rank, counted here. Run with a Python that has tensorboard and safetensors:

    python tests/interop/tensorboard_histograms.py build/release/bin/ranklab

Prints how many tensors were compared and ends with 1 when one differs."""
import bisect
import glob
import os
import subprocess
import sys
import tempfile

import numpy
from safetensors.numpy import load_file
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

RUN = ["train", "--mock-data", "--num-layers", "3", "--hidden-size", "64", "--ffn-hidden-size", "96", "--vocab-size", "300",
       "--num-attention-heads", "4", "--seq-length", "32", "--gbs", "8", "--micro-batch-size", "1", "--params-dtype", "fp64",
       "--train-iters", "3", "--clip-grad", "0", "--eval-interval", "0", "--sample-tokens", "0", "--no-trace"]
DUMP = ["--world-size", "1", "--dump", "*", "--at", "step=2"]
WATCH = ["--tp", "2", "--pp", "2", "--world-size", "8", "--zero-stage", "1", "--sentinel-mode", "debug",
         "--sentinel-histogram-interval", "2", "--tensorboard-dir", "tb"]


def run(program, folder, *arguments):
    subprocess.run([program, *RUN, *arguments], cwd=folder, check=True, stdout=subprocess.DEVNULL)


def differs(histogram, values):
    """What is wrong with a histogram of these values; "": nothing."""
    for name, got, want in [("min", histogram.min, values.min()), ("max", histogram.max, values.max()),
                            ("num", histogram.num, values.size), ("sum of squares", histogram.sum_squares, (values ** 2).sum())]:
        if not numpy.isclose(got, want, rtol=1e-9, atol=0):
            return f"{name} {got} {want}"
    if abs(histogram.sum - values.sum()) > 1e-9 * numpy.abs(values).sum():
        return f"sum {histogram.sum} {values.sum()}"
    counts = [0] * len(histogram.bucket)
    for value in values:  # an edge belongs to the bin farther from zero
        counts[(bisect.bisect_right if value > 0 else bisect.bisect_left)(histogram.bucket_limit, value)] += 1
    return "" if counts == list(histogram.bucket) else f"counts {histogram.bucket} {counts}"


def main():
    program = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        run(program, folder, "--log-dir", "one", *DUMP)
        run(program, folder, "--log-dir", "eight", *WATCH)
        tensors = load_file(os.path.join(folder, "one/dump/step-2/rank-0.safetensors"))
        events = EventAccumulator(glob.glob(os.path.join(folder, "tb/*"))[0], size_guidance={"histograms": 0})
        events.Reload()
    bad = compared = 0
    for tag in sorted(events.Tags()["histograms"]):
        kind, name = tag.split("/", 1)
        values = tensors[("weight/" if kind == "weights_hist" else "grad/") + name].astype(numpy.float64).flatten()
        found = {event.step: event.histogram_value for event in events.Histograms(tag)}
        assert sorted(found) == [0, 2], found.keys()
        wrong = differs(found[2], values)
        compared += 1
        if wrong:
            bad += 1
            print(f"{tag}: {wrong}")
    names = [name for name in tensors if name.startswith(("weight/", "grad/"))]
    print(f"{compared} histograms of {len(names)} weights and gradients, {bad} differ")
    return 1 if bad or compared != len(names) else 0


if __name__ == "__main__":
    sys.exit(main())
