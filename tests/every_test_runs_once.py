#!/usr/bin/env python3
"""Every case of every shared test program is run by one entry of ctest: no more, no less. The entries select theirs by the
suites that CMake reads in the sources (cmake/RanklabTest.cmake); a suite that a macro of ours makes, or one whose name is in
two entries, would be lost or run twice without a word.

every_test_runs_once.py FILE    its lines: program, entry, filter, with tabs between"""
import collections
import fnmatch
import subprocess
import sys


def cases_of(program):
    """What --gtest_list_tests prints: a suite at the margin, its cases below, comments after #."""
    listing = subprocess.run([program, "--gtest_list_tests"], check=True, capture_output=True, text=True).stdout
    suite, cases = None, []
    for line in listing.splitlines():
        name = line.split("#")[0].rstrip()
        if name.startswith("  "):
            cases.append(suite + name.strip())
        elif name.endswith("."):  # the line before the first suite says which main runs
            suite = name
    return cases


def main():
    entries = collections.defaultdict(list)
    with open(sys.argv[1], encoding="utf-8") as rows:
        for row in rows:
            program, entry, patterns = row.rstrip("\n").split("\t")
            entries[program].append((entry, patterns.split(":")))
    wrong, total = [], 0
    for program, selections in entries.items():
        cases = cases_of(program)
        total += len(cases)
        runs = collections.defaultdict(list)
        for entry, patterns in selections:
            mine = [case for case in cases if any(fnmatch.fnmatchcase(case, pattern) for pattern in patterns)]
            if not mine:
                wrong.append(f"{entry} runs no case")
            for case in mine:
                runs[case].append(entry)
        for case in cases:
            if len(runs[case]) != 1:
                wrong.append(f"{case} of {program} is run by {', '.join(runs[case]) or 'no entry'}; want one")
    if not total:
        wrong.append("no program has a case")
    print("\n".join(wrong) or f"{total} cases of {len(entries)} programs")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
