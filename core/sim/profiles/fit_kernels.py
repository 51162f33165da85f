#!/usr/bin/env python3
"""Fits the [kernels] and [collectives] tables of the hardware profiles to measured times of GPU operators.

    python3 core/sim/profiles/fit_kernels.py TABLES GPU ...      (needs numpy and scipy)

TABLES is a folder with gemm_GPU.csv (dtype,m,n,k,trtllm_ms,sglang_ms,vllm_ms), attention_fwd.csv, memory_bound.csv and
nccl.csv: the operator tables of ai-dynamo/aiconfigurator, commit 095f58a, Apache-2.0, converted from parquet. Prints
TOML to put into a profile, each table with its error on the 30 % of points that were not fitted. The models are those
of core/sim/kernel_time.cpp and core/sim/collective_time.cpp; a test holds the two to the same numbers.
"""
import csv
import sys

import numpy as np
from scipy.optimize import minimize

PEAK_TFLOPS = {  # dense 16 bits, 8 bits
    "a100": (312, 312), "h100": (989.4, 1978.9), "h200": (989.4, 1978.9), "b200": (2250, 4500), "b300": (2250, 4500),
    "gb200": (2500, 5000), "gb300": (2500, 5000), "l40s": (362, 733), "rtxpro6000": (468, 936)}
MEMORY_TB_S = {"a100": 2.039, "h100": 3.35, "h200": 4.8, "b200": 8, "b300": 8, "gb200": 8, "gb300": 8, "l40s": .864,
               "rtxpro6000": 1.792}
SMS = {"a100": 108, "h100": 132, "h200": 132, "b200": 148, "b300": 148, "gb200": 152, "gb300": 152, "l40s": 142,
       "rtxpro6000": 188}
TILES = [(256, 128), (128, 256), (128, 128), (128, 64), (64, 128), (64, 64), (64, 32), (32, 64), (256, 64), (64, 256)]
CACHED_BYTES = 30e6
THROTTLED_S = 3e-3
QUERY_TILE = 128


def rows_of(path, wanted):
    with open(path, newline="") as file:
        return [row for row in csv.DictReader(file) if wanted(row)]


def gemm_seconds(p, m, n, k, sms, peak, bandwidth, moved_bytes):
    efficiency, tile_loss, inner_overhead, launch_us, memory, wave_rounding, cached, split_us, throttle = p
    rate = peak * efficiency / sms
    best = np.full(len(m), np.inf)
    for rows, cols in TILES:
        tiles = np.ceil(m / rows) * np.ceil(n / cols)
        reached = 1 / (1 + tile_loss * (1 / rows + 1 / cols))
        for split in (1, 2, 4, 8, 16):
            waves = tiles * split / sms
            waves = np.where(waves <= 1, 1, (1 - wave_rounding) * waves + wave_rounding * np.ceil(waves))
            t = waves * (np.ceil(k / split) + inner_overhead) * 2 * rows * cols / (rate * reached)
            if split > 1:
                t = t + m * n * 4 * split / (bandwidth * memory) + split_us * 1e-6
                t = np.where(k / split < 256, np.inf, t)
            best = np.minimum(best, t)
    best = best * (1 + throttle * best / (best + THROTTLED_S))
    moved = moved_bytes / (bandwidth * memory)
    moved = np.where(moved_bytes < CACHED_BYTES, moved / cached, moved)
    return launch_us * 1e-6 + (best**3 + moved**3) ** (1 / 3)


def attention_seconds(p, queries, keys, width, sms, peak, bandwidth, moved_bytes):
    efficiency, width_loss, launch_us, memory, inner_overhead, tail = p
    rate = peak * efficiency * width / (width + width_loss) / sms
    tiles = queries / QUERY_TILE
    of_tile = 4 * QUERY_TILE * (keys + inner_overhead) * width / rate
    compute = np.maximum(tiles / sms + tail, 1) * of_tile
    return launch_us * 1e-6 + (compute**3 + (moved_bytes / (bandwidth * memory)) ** 3) ** (1 / 3)


def collective_seconds(p, verb, steps, sent_bytes):
    base, hop, rate, factor = np.array(p[:3]), np.array(p[3:6]), np.array(p[6:9]), np.array([1, *p[9:12]])
    f = factor[verb]
    each = [(base[i] + hop[i] * steps) * 1e-6 + sent_bytes / (rate[i] * 1e9 * (f if i > 0 else 1)) for i in range(3)]
    return np.minimum(np.minimum(each[0], each[1]), each[2])


def fit(model, measured, starts, highest):
    rng = np.random.RandomState(0)
    train = rng.rand(len(measured)) < .7

    def loss(p):
        if (np.array(p) < 0).any() or (np.array(p) > highest).any():
            return 9
        error = np.log(model(p)[train] / measured[train])
        return np.mean(np.sqrt(error**2 + 1e-3))

    best = None
    for start in starts:
        for _ in range(2):
            r = minimize(loss, start, method="Nelder-Mead", options={"maxiter": 4000, "maxfev": 6000, "adaptive": True})
            start = r.x
        if best is None or r.fun < best.fun:
            best = r
    error = np.abs(model(best.x) / measured - 1)[~train]
    return best.x, f"{len(measured)} points; of those not fitted half are within {np.median(error):.1%}, nine of ten within {np.quantile(error, .9):.1%}"


def table(name, keys, values, note):
    print(f"\n[{name}]  # {note}")
    for key, value in zip(keys, values):
        print(f"{key} = {value:.4g}")


GEMM_KEYS = ["efficiency", "tile_loss", "inner_overhead", "launch_us", "bandwidth", "wave_rounding", "cached", "split_us",
             "throttle"]
GEMM_STARTS = [[.85, 10, 100, 2.5, .8, .5, 1.5, 2, .1], [.75, 30, 300, 3, .9, .8, 1.2, 3, .05],
               [.9, 20, 60, 2.5, .8, .2, 1, 2.5, .1]]
GEMM_HIGHEST = [3, 200, 1000, 20, 1, 1, 4, 20, 1]


def fit_gemm(tables, gpu, dtype, column, name):
    rows = rows_of(f"{tables}/gemm_{gpu}.csv", lambda r: r["dtype"] == dtype and r[column])
    if not rows:
        return
    m, n, k = (np.array([int(r[c]) for r in rows]) for c in "mnk")
    measured = np.array([float(r[column]) * 1e-3 for r in rows])
    low = dtype != "bfloat16"
    sms, peak, bandwidth = SMS[gpu], PEAK_TFLOPS[gpu][low] * 1e12, MEMORY_TB_S[gpu] * 1e12
    moved = (m * k + n * k) * {"bfloat16": 2, "fp8": 1, "nvfp4": .5}[dtype] + m * n * 2

    def model(p):
        t = gemm_seconds(p[:9], m, n, k, sms, peak, bandwidth, moved)
        return t + p[9] * m * k * 3 / bandwidth if low else t  # the operator quantizes its input, too

    extra = [1.5] if low else []
    p, note = fit(model, measured, [s + extra for s in GEMM_STARTS], GEMM_HIGHEST + ([5] if low else []))
    table(name, GEMM_KEYS, p, note)


def fit_attention(tables, gpu):
    rows = rows_of(f"{tables}/attention_fwd.csv", lambda r: r["gpu"] == gpu and r["dtype"] == "bfloat16"
                   and int(r["head_dim"]) <= 256 and (r["sglang_ms"] or r["vllm_ms"]))
    b, s, h, kv, d = (np.array([int(r[c]) for r in rows]) for c in ("batch", "seq", "heads", "kv_heads", "head_dim"))
    measured = np.array([min(float(r[c]) for c in ("sglang_ms", "vllm_ms") if r[c]) * 1e-3 for r in rows])
    moved = 2 * d * b * s * (2 * h + 2 * kv)
    p, note = fit(lambda p: attention_seconds(p, b * h * s, s / 2, d, SMS[gpu], PEAK_TFLOPS[gpu][0] * 1e12,
                                              MEMORY_TB_S[gpu] * 1e12, moved),
                  measured, [[.7, 30, 12, .5, 100, .5], [.6, 10, 10, .3, 50, 1]], [3, 300, 30, 1, 2000, 10])
    table("kernels.attention", ["efficiency", "width_loss", "launch_us", "bandwidth", "inner_overhead", "tail"], p,
          note + "; causal, forward")


def fit_collectives(tables, gpu):
    rows = rows_of(f"{tables}/nccl.csv", lambda r: r["gpu"] == gpu and r["half_us"])
    newest = max(r["nccl"] for r in rows)
    rows = [r for r in rows if r["nccl"] == newest]
    verbs = ["all_gather", "reduce_scatter", "all_reduce", "alltoall"]
    verb = np.array([verbs.index(r["op"]) for r in rows])
    n, size = (np.array([int(r[c]) for r in rows]) for c in ("ngpus", "bytes"))
    rounds = np.where(verb == 2, 2, 1)
    sent = size * (n - 1) / n * rounds
    measured = np.array([float(r["half_us"]) * 1e-6 for r in rows])
    most = (sent / measured).max() / 1e9
    p, note = fit(lambda p: collective_seconds(p, verb, rounds * (n - 1), sent), measured,
                  [[6, 12, 25, .5, 1, 2, most / 10, most / 3, most, 1, 1.2, 1],
                   [8, 10, 40, .1, .5, 1, most / 20, most / 2, most, 1, 1, .9]],
                  [60] * 3 + [10] * 3 + [2000] * 3 + [3] * 3)
    keys = [f"{what}_{i}" for what in ("base_us", "hop_us", "gb_s") for i in ("short", "middle", "long")]
    table("collectives", keys + ["reduce_scatter", "all_reduce", "all_to_all"], p, f"NCCL {newest}: " + note)


def main():
    tables, gpus = sys.argv[1], sys.argv[2:]
    for gpu in gpus:
        print(f"\n# {gpu}")
        casts = [float(r["m"]) * float(r["k"]) * 3 / (float(r["t_us"]) * 1e-6) / (MEMORY_TB_S[gpu] * 1e12)
                 for r in rows_of(f"{tables}/memory_bound.csv", lambda r: r["gpu"] == gpu)
                 if float(r["m"]) * float(r["k"]) * 3 > 256e6]
        print(f"\n[kernels]\nsms = {SMS[gpu]}")
        print(f"bandwidth = {np.median(casts):.3g}  # of memory_bandwidth, casts of 256 MB and more" if casts
              else "bandwidth = 0.82  # no casts measured; products reach it")
        fit_gemm(tables, gpu, "bfloat16", "trtllm_ms", "kernels.gemm_16bit")
        fit_gemm(tables, gpu, "fp8", "sglang_ms", "kernels.gemm_8bit")
        fit_gemm(tables, gpu, "nvfp4", "trtllm_ms", "kernels.gemm_4bit")
        fit_attention(tables, gpu)
        fit_collectives(tables, gpu)


if __name__ == "__main__":
    main()
