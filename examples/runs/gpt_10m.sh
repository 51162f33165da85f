#!/bin/bash
# The recorded run of examples/runs: train a tokenizer on a text, tokenize the text, and train a model of 10M parameters
# on 8 simulated ranks. Takes an hour and a half on two cores. If interrupted, run it again to resume.
#   examples/runs/gpt_10m.sh [FOLDER [SETTING...]]
# FOLDER: where everything is written (default: runs/gpt_10m). TEXT: the text (default: the King James Bible of Debian's
# bible-kjv). VOCAB: vocabulary size. The files in examples/runs/gpt_10m were made with:
#   python3 examples/runs/thin.py runs/gpt_10m/log/metrics.jsonl 8 > examples/runs/gpt_10m/metrics.jsonl
#   ./ranklab report examples/runs/gpt_10m -o examples/runs/gpt_10m/loss.svg --force
# The same with 125M parameters on a GPU, for a text that is long enough:
#   TEXT=book.txt VOCAB=50257 examples/runs/gpt_10m.sh runs/gpt_124m --preset gpt2_124m --backend cuda --world-size 1 \
#     --tp 1 --pp 1 --dp 1 --bf16 --global-batch-size 512 --micro-batch-size 32 --lr 6e-4 --min-lr 6e-5 --train-iters 20000 \
#     --lr-warmup-iters 700
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
ranklab=${RANKLAB:-$here/../../ranklab}
folder=${1:-runs/gpt_10m}
shift $(($# > 0 ? 1 : 0))
mkdir -p "$folder"

text=${TEXT:-$folder/kjv.txt}
if [ -z "${TEXT:-}" ] && [ ! -s "$text" ]; then  # "Ge1:1 In the beginning ...", one verse per line
  bible -f Gen1:1-Rev22:21 | sed 's/^[^ ]* //' > "$text.part" || { echo "no text: apt-get install bible-kjv, or TEXT=FILE" >&2; exit 3; }
  mv "$text.part" "$text"
fi
[ -e "$folder/tokenizer/tokenizer.json" ] || "$ranklab" data tokenizer train "$text" --vocab-size "${VOCAB:-4096}" -o "$folder/tokenizer"
"$ranklab" data prepare "$text" --tokenizer "$folder/tokenizer" --out "$folder/shards"
exec "$ranklab" train --config "$here/gpt_10m.toml" --data-path "$folder/shards" --save "$folder/checkpoints" --load auto \
  --log-dir "$folder/log" "$@"
