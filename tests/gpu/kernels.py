"""The kernels of a profile that train --profile wrote, those that took longest first. kernels.py PROFILE.json [ROWS]"""
import collections
import json
import sys


def main():
    with open(sys.argv[1]) as file:
        events = json.load(file)["traceEvents"]
    rows = int(sys.argv[2]) if len(sys.argv) > 2 else 40
    time, count = collections.Counter(), collections.Counter()
    busy = []
    for e in events:
        if e.get("ph") == "X" and e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset"):
            time[e["name"]] += e["dur"]
            count[e["name"]] += 1
            busy.append((e["ts"], e["ts"] + e["dur"]))
    busy.sort()
    idle, end = 0.0, busy[0][0]
    for begin, finish in busy:
        idle += max(0.0, begin - end)
        end = max(end, finish)
    print("GPU busy %.1f ms, idle between kernels %.1f ms, %d kernels" % (sum(time.values()) / 1e3, idle / 1e3, len(busy)))
    for name, us in time.most_common(rows):
        print("%9.2f ms %6d  %s" % (us / 1e3, count[name], name[:150]))


main()
