#!/usr/bin/env bash
# The proof kit: shows on a machine with a GPU what this build does there, and says what failed.
#   tests/gpu/run.sh OUT [--part A|B|C ...] [--minutes 25] [--step-seconds N] [--only REGEX] [--stand-in]
# Parts: A one rank, B ranks that share the GPU over NCCL, C rank threads on the GPU and speed. Every step has its own
# time-out and its own row; a failure never stops the rest. --minutes limits all steps together, --step-seconds each one
# on top of its own limit. OUT gets result.json, result.md, log, a folder of runs. Runs from .gpu/ (pack.sh) where that
# is, else from build/cuda. Without a GPU every step that needs one is skipped with that reason. Exit code 4 when a step
# failed. --stand-in: on a GPU that is not there (tests/cuda/stand_in), to see before a GPU is there that the kit's own
# commands are right; part B needs several processes, which the stand-in has not, and speed has no meaning.
set -uo pipefail
kit=$(cd "$(dirname "$0")" && pwd)
out=${1:?usage: tests/gpu/run.sh OUT [--part A|B|C ...] [--minutes 25] [--step-seconds N] [--only REGEX] [--stand-in]}; shift
parts=() minutes=25 only=. step_seconds=3600 stand_in=
while [ $# -gt 0 ]; do
  case $1 in
    --part) parts+=("$2"); shift 2 ;;
    --minutes) minutes=$2; shift 2 ;;
    --only) only=$2; shift 2 ;;
    --step-seconds) step_seconds=$2; shift 2 ;;
    --stand-in) stand_in=yes; shift ;;
    *) echo "run.sh: what is $1? want --part, --minutes, --step-seconds, --only or --stand-in" >&2; exit 2 ;;
  esac
done
[ ${#parts[@]} -gt 0 ] || parts=(A B C)
mkdir -p "$out" && out=$(cd "$out" && pwd)
. "$kit/machine.sh"
. "$kit/step.sh"
. "$kit/runs.sh"
begin_results
for part in "${parts[@]}"; do . "$kit/part_${part,,}.sh"; done
end_results
