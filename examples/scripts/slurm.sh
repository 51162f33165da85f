#!/bin/bash
# Runs one of these scripts on every node of a SLURM job:
#   sbatch --nodes 2 examples/scripts/slurm.sh gpt_3b.sh --train-iters 5000
# The run's secret is created in the job's folder, which all nodes must be able to read.
#SBATCH --job-name=ranklab
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=8
#SBATCH --cpus-per-task=64
#SBATCH --exclusive
#SBATCH --output=%x-%j.log
set -euo pipefail

script=${1:?usage: slurm.sh SCRIPT [SETTING...]}
shift
folder=${SLURM_SUBMIT_DIR:-$PWD}/examples/scripts
hosts=$(scontrol show hostnames "$SLURM_JOB_NODELIST")
first=${hosts%%$'\n'*}  # not with head, which would close the pipe early and so cause an error
export NUM_NODES=$SLURM_JOB_NUM_NODES MASTER_ADDR=$first MASTER_PORT=$((20000 + SLURM_JOB_ID % 12000))
export TOKEN_FILE=${SLURM_SUBMIT_DIR:-$PWD}/.token-$SLURM_JOB_ID
(umask 077 && openssl rand -hex 32 > "$TOKEN_FILE")
trap 'rm -f "$TOKEN_FILE"' EXIT

# One launcher per node, which starts a rank for each of the node's GPUs.
# shellcheck disable=SC2016  # the variable is only known on the node
srun --ntasks-per-node=1 bash -c 'NODE_RANK=$SLURM_NODEID exec "$@"' launcher "$folder/$script" "$@"
