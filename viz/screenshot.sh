#!/usr/bin/env bash
# viz/screenshot.sh [PROGRAM [OUT.png]]: makes the README's picture. Trains eight simulated ranks for three steps, then draws the window without a display.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
program=$(realpath "${1:-$here/../build/release/bin/ranklab}")
out=$(realpath -m "${2:-$here/screenshot.png}")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
"$program" train --num-layers 7 --pp 4 --tp 2 --pipeline-schedule zb-h1 --num-microbatches 8 --train-iters 3 --eval-interval 0 --sample-tokens 0 --mock-data --log-dir zb-h1 >/dev/null
"$program" viz zb-h1/trace.json.gz --headless --layout Pipeline --goto step=1,sel=r2/B3 --size 1600x960 --force -o "$out"
