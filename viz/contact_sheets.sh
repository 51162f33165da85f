#!/usr/bin/env bash
# viz/contact_sheets.sh FOLDER [PROGRAM]: pictures of the window, for review after it was changed. Six runs, each layout at three
# moments in three sizes, dark and light: FOLDER/RUN-LAYOUT-STEP-SIZE-THEME.png. Takes some minutes.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
out=$(realpath -m "${1:?usage: viz/contact_sheets.sh FOLDER [PROGRAM]}")
program=$(realpath "${2:-$here/../build/release/bin/ranklab}")
mkdir -p "$out"
cd "$out"
declare -A runs=(
  [default]=""
  [zb-h1]="--pp 4 --pipeline-schedule zb-h1 --gbs 32"
  [experts]="--ep 8 --num-experts 16"
  [ring]="--cp 8 --cp-balance contiguous --seq-length 8192 --num-layers 2 --gbs 1"
  [zero3]="--zero-stage 3"
  [fp8]="--tp 2 --precision-recipe fp8_delayed"
)
for run in "${!runs[@]}"; do
  # shellcheck disable=SC2086
  "$program" train ${runs[$run]} --train-iters 12 --mock-data --eval-interval 0 --sample-tokens 0 --log-dir "$run" >/dev/null
  for layout in Pipeline Stage Traffic Context Memory Precision Lesson; do
    for step in 1 5 11; do
      for size in 1280x720 1600x900 2560x1440; do
        for theme in dark light; do
          said=$("$program" viz "$run/trace.json.gz" --headless --layout $layout --goto step=$step --size $size --theme $theme \
            --force -o "$run-$layout-$step-$size-$theme.png" 2>&1) || { echo "$said" >&2; exit 1; }
        done
      done
    done
  done
  echo "$run: 126 pictures in $out"
done
