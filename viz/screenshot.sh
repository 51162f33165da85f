#!/usr/bin/env bash
# viz/screenshot.sh [PROGRAM [OUT.png [PARITY.svg]]]: makes the README's picture: trains eight simulated ranks for three steps, then draws the window without a
# display. Then the picture of docs/parity.md.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
program=$(realpath "${1:-$here/../build/release/bin/ranklab}")
out=$(realpath -m "${2:-$here/screenshot.png}")
parity=$(realpath -m "${3:-$here/parity.svg}")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
"$program" train --num-layers 7 --pp 4 --tp 2 --pipeline-schedule zb-h1 --num-microbatches 8 --train-iters 3 --eval-interval 0 --sample-tokens 0 --mock-data --log-dir zb-h1 >/dev/null
"$program" viz zb-h1/trace.json.gz --headless --layout Pipeline --goto step=1,sel=r2/B3 --size 1600x960 --force -o "$out"
"$program" parity --world-size 4 --tp 2 --pp 2 --num-layers 2 --train-iters 1 --inject norm-unreduced --force --out "$parity" >/dev/null || [ $? -eq 4 ]
