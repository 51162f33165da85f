#!/bin/bash
# GPT-3 2.7B with ZeRO stage 3, Muon and a batch size ramp-up to 1024 sequences of 2048 tokens. Variables: pretrain.sh.
set -euo pipefail
exec "$(dirname "${BASH_SOURCE[0]}")/pretrain.sh" gpt_3b --zero-stage 3 --optimizer muon --muon-distribution distributed \
  --gbs "${GBS:-1024}" --mbs "${BATCH_SIZE:-8}" --rampup-batch-size "${START_GBS:-256}" "${GBS_INCREMENT:-256}" \
  "${RAMPUP_SAMPLES:-65536}" --train-iters "${STEPS:-10000}" --lr-warmup-iters "${WARMUP_STEPS:-500}" "$@"
