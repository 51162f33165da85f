#!/bin/bash
# A small mixture of experts: 8 experts per layer, 2 per token, sharded over a group of SEP_SIZE ranks that also split
# the sequences. Variables: pretrain.sh.
set -euo pipefail
exec "$(dirname "${BASH_SOURCE[0]}")/pretrain.sh" moe_0.3b_a0.17b --gbs "${GBS:-1024}" --mbs "${BATCH_SIZE:-8}" \
  --train-iters "${STEPS:-1000}" --lr-warmup-iters "${WARMUP_STEPS:-100}" "$@"
