#!/usr/bin/env python3
"""Which folder may include which: each file's includes are held to its folder's row, and rows name folders above them.
Within a folder, no two rooms (folders beside each other) include each other, and none is crowded.

    tests/folder_arrows.py [ROOT]

A new arrow is a decision: add it here only if it points down in the table, which is in the order of the folders.
"""
import collections
import pathlib
import re
import sys

CORE = ["base", "trace", "live", "spec", "checkpoint", "precision", "sim", "comm", "spmd", "pipeline", "nn", "parallel", "model",
        "optim", "data", "museum", "config", "runtime", "plan", "parity"]
MAY_INCLUDE = {
    "core/base": "",
    "core/trace": "core/base",
    "core/live": "core/base core/trace",
    "core/spec": "core/base",
    "core/checkpoint": "core/base core/spec",
    "core/precision": "core/base",
    "core/sim": "core/base",
    "core/comm": "core/base core/trace core/sim",
    "core/spmd": "core/base core/sim core/comm",
    "core/pipeline": "core/base core/trace",
    "core/nn": "core/base core/spec core/precision core/sim",
    "core/parallel": "core/base core/trace core/spec core/precision core/sim core/comm core/nn",
    "core/model": "core/base core/trace core/spec core/sim core/comm core/nn core/parallel",
    "core/optim": "core/base core/sim core/comm core/nn",
    "core/data": "core/base core/sim",
    "core/museum": "core/base core/precision",
    "core/config": "core/base core/museum core/spec core/precision core/sim core/comm core/pipeline core/optim",
    "core/runtime": " ".join("core/" + folder for folder in CORE if folder not in ("runtime", "plan", "parity")),
    "core/plan": " ".join("core/" + folder for folder in CORE if folder not in ("plan", "parity")),
    "core/parity": "core/base core/checkpoint core/comm core/config core/model core/museum core/nn core/parallel core/pipeline core/precision core/runtime core/sim",
    "backends/cpu_sim": "core/base core/trace core/live core/sim core/comm",
    "backends/meta": "core/base core/sim core/comm",
    "backends/cuda": "core/base core/trace core/precision core/sim core/comm core/nn",
    "viz/model": "core/base core/trace core/pipeline",
    "viz/html": "core/base viz/model",
    "viz/panels": "core/base core/live core/pipeline viz/model",
    "viz/app": "core/base viz/model viz/html viz/panels",
}
# Programs may include all of these, and what their row says; no folder includes a program.
PROGRAMS = {"lessons": "", "examples": "", "cli": "lessons"}
MOST_FILES = 45  # in a room: a reader should see at a glance what is there
SOURCES = (".h", ".cpp", ".cu", ".cuh")
INCLUDE = re.compile(r'\s*#\s*include "((?:core|backends|viz|cli|lessons|examples|tests)/[^"]+)"')


def folder_of(path):
    """The row that a path belongs to, or None: "core/nn/norm.h" is of core/nn."""
    parts = path.split("/")
    if parts[0] in PROGRAMS:
        return parts[0]
    folder = "/".join(parts[:2])
    return folder if folder in MAY_INCLUDE else None


def breaches(root):
    arrows = collections.Counter()
    for source in sorted(root.glob("*/**/*")):
        path = source.relative_to(root).as_posix()
        here = folder_of(path)
        if source.suffix not in SOURCES or here is None:
            continue
        for number, line in enumerate(source.read_text().splitlines(), 1):
            found = INCLUDE.match(line)
            if not found:
                continue
            there = folder_of(found[1]) or found[1].split("/")[0]
            if there == here:
                continue
            arrows[here, there] += 1
            if here in PROGRAMS:
                allowed = [*MAY_INCLUDE, *PROGRAMS[here].split()]
            else:
                allowed = MAY_INCLUDE[here].split()
            if there not in allowed:
                yield f"{path}:{number}: {here} may not include {there} ({found[1]})"
    order = list(MAY_INCLUDE)
    for here, row in MAY_INCLUDE.items():
        for there in row.split():
            if order.index(there) >= order.index(here):
                yield f"tests/folder_arrows.py: the row of {here} names {there}, which is not above it"
            if (here, there) not in arrows and here not in ("core/runtime", "core/plan"):
                yield f"tests/folder_arrows.py: no file of {here} includes {there}: take it out of the row"


def room_breaches(root):
    """Rooms of one folder that include each other, also over others, and rooms with too many files."""
    arrows, files = {}, collections.Counter()
    for source in sorted(root.glob("*/**/*")):
        path = source.relative_to(root)
        if source.suffix not in SOURCES or folder_of(path.as_posix()) is None:
            continue
        here = path.parent
        files[here] += 1
        for line in source.read_text().splitlines():
            found = INCLUDE.match(line)
            there = pathlib.PurePath(found[1]).parent if found else here
            if there != here and there.parent == here.parent and len(there.parts) > 2:
                arrows.setdefault((here, there), f"{path} includes {found[1]}")
    # Arrows that lead nowhere else cannot be part of a circle.
    circle = dict(arrows)
    while ends := {there for _, there in circle} - {here for here, _ in circle}:
        circle = {arrow: line for arrow, line in circle.items() if arrow[1] not in ends}
    for line in circle.values():
        yield f"rooms include each other in a circle: {line}"
    for room, count in files.items():
        if count > MOST_FILES:
            yield f"{room}: {count} files, want at most {MOST_FILES}: give those that belong together a room"


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent)
    found = [*breaches(root), *room_breaches(root)]
    for breach in found:
        print(breach)
    if not found:
        print(f"{len(MAY_INCLUDE)} folders, no arrow that is not in the table, no circle")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
