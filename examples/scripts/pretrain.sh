#!/bin/bash
# Trains a preset on the GPUs of one node or several, with one process per GPU. Run it on every node:
#   NUM_NODES=2 NODE_RANK=0 MASTER_ADDR=10.0.0.1 TOKEN_FILE=token examples/scripts/pretrain.sh gpt_3b
#   NUM_NODES=2 NODE_RANK=1 MASTER_ADDR=10.0.0.1 TOKEN_FILE=token examples/scripts/pretrain.sh gpt_3b
# NUM_GPUS: GPUs per node. SEP_SIZE: size of the group for sequences and experts. TOKEN_FILE: the run's secret, the same
# file on every node (openssl rand -hex 32 > token). DATA: a text file or a folder of token shards (default: generated
# sentences). Arguments after the preset are settings of `ranklab train --help`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

preset=${1:?usage: pretrain.sh PRESET [SETTING...]}
shift
launch=(--nnodes "${NUM_NODES:-1}" --nproc-per-node "${NUM_GPUS:-8}")
if [ "${NUM_NODES:-1}" -gt 1 ]; then
  launch+=(--node-rank "${NODE_RANK:?which node this is, 0 to NUM_NODES - 1}")
  launch+=(--master-addr "${MASTER_ADDR:?an address of node 0}" --master-port "${MASTER_PORT:-29500}")
  launch+=(--rdzv-token-file "${TOKEN_FILE:?the secret that all nodes share}")
fi
data=(--mock-data)
if [ -n "${DATA:-}" ]; then data=(--data-path "$DATA"); fi

exec "${RANKLAB:-./ranklab}" launch "${launch[@]}" --backend "${BACKEND:-cuda}" --preset "$preset" "${data[@]}" \
  --tp 1 --pp 1 --sep "${SEP_SIZE:-0}" --use-distributed-optimizer --bf16 \
  --lr "${MAX_LR:-6e-4}" --min-lr "${MIN_LR:-6e-5}" --weight-decay 0.1 --clip-grad 1.0 --sample-tokens 0 "$@"
