#!/bin/bash
# The scripts of examples/scripts and examples/runs: sound as shell programs, their settings are ones that a run takes, they start ranks,
# and the one for SLURM starts a launcher on each node. SLURM itself is played by two functions of its names.
#   scripts_test.sh RANKLAB
set -euo pipefail
ranklab=$1
cd "$(dirname "${BASH_SOURCE[0]}")/../../examples/scripts"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "FAILED: $*"; exit 1; }

for script in *.sh ../runs/*.sh; do
  bash -n "$script" || fail "$script is no shell program"
  [ -x "$script" ] || fail "$script cannot be executed"
  if command -v shellcheck > /dev/null; then shellcheck "$script" || fail "shellcheck of $script"; fi
done

# A launch of N ranks as a plan of N ranks.
cat > "$work/planned" <<EOF
#!/bin/bash
[ "\$1 \$2 \$4" = "launch --nnodes --nproc-per-node" ] || exit 9
nodes=\$3 ranks=\$5
shift 5
while [[ \$1 == --node-rank || \$1 == --master-addr || \$1 == --master-port || \$1 == --rdzv-token-file ]]; do
  echo "\$1 \$2" >> "$work/nodes"
  shift 2
done
exec "$ranklab" train --world-size \$((nodes * ranks)) "\$@" --dry-run
EOF
chmod +x "$work/planned"
export BACKEND=cpu_sim
RANKLAB=$work/planned ./gpt_3b.sh --hardware h100-sxm > "$work/plan" || fail "gpt_3b.sh"
grep -q "gpt_3b: 2.65B parameters" "$work/plan" || fail "gpt_3b.sh plans another model: $(head -1 "$work/plan")"
grep -q "from 256 sequences by 256 over the first 65536" "$work/plan" || fail "batches do not grow"
SEP_SIZE=2 GBS=64 RANKLAB=$work/planned ./moe_0.3b_a0.17b.sh > "$work/plan" || fail "moe_0.3b_a0.17b.sh"
grep -q "ep 2" "$work/plan" || fail "no group of two ranks: $(cat "$work/plan")"

# Ranks start and train.
NUM_GPUS=2 RANKLAB=$ranklab ./pretrain.sh gpt_tiny --gbs 4 --train-iters 2 --num-layers 1 --eval-interval 0 --no-trace \
  --log-dir "$work/run" > "$work/out" || fail "pretrain.sh: $(cat "$work/out")"
grep -q "done after 2 steps" "$work/out" || fail "nothing was trained: $(cat "$work/out")"

# Two nodes of a job.
mkdir "$work/bin"
printf '#!/bin/bash\necho node0\necho node1\n' > "$work/bin/scontrol"
# shellcheck disable=SC2016  # for the function itself
printf '#!/bin/bash\nshift\nfor node in 0 1; do SLURM_NODEID=$node "$@" || exit 1; done\n' > "$work/bin/srun"
chmod +x "$work/bin/"*
rm -f "$work/nodes"
PATH=$work/bin:$PATH SLURM_JOB_NODELIST='node[0-1]' SLURM_JOB_NUM_NODES=2 SLURM_JOB_ID=41 SLURM_SUBMIT_DIR=$(cd ../.. && pwd) \
  RANKLAB=$work/planned NUM_GPUS=2 ./slurm.sh pretrain.sh gpt_tiny > "$work/plan" || fail "slurm.sh"
[ "$(grep -c "world    4 ranks" "$work/plan")" = 2 ] || fail "not a launcher for each node: $(cat "$work/plan")"
for line in "--node-rank 0" "--node-rank 1" "--master-addr node0"; do
  grep -q -e "$line" "$work/nodes" || fail "a launcher was not told $line"
done
[ ! -e ../../.token-41 ] || fail "the run's secret was left"

# The recorded run in small: trains, goes on, and its metrics are thinned; what its first lines say of 125M is planned.
for i in $(seq 400); do echo "And the $i said unto them, $((i * i)) loaves."; done > "$work/text"
recorded() {
  TEXT=$work/text VOCAB=300 RANKLAB=$ranklab ../runs/gpt_10m.sh "$work/recorded" --num-layers 2 --hidden-size 64 --ffn-hidden-size 64 \
    --num-attention-heads 2 --seq-length 32 --sentinel-mode off --eval-interval 2 --eval-iters 1 --sample-tokens 0 --no-trace \
    --lr-warmup-iters 1 --lr-decay-iters 4 "$@" > "$work/out" 2>&1 || fail "gpt_10m.sh: $(cat "$work/out")"
}
recorded --train-iters 3
grep -q "done after 3 steps" "$work/out" || fail "nothing was trained: $(cat "$work/out")"
recorded --train-iters 4
grep -q "done after 4 steps" "$work/out" || fail "it did not go on: $(cat "$work/out")"
[ "$(python3 ../runs/thin.py "$work/recorded/log/metrics.jsonl" 2 | grep -c validation_loss)" = 3 ] || fail "thin.py: $(cat "$work/recorded/log/metrics.jsonl")"
settings=$(sed -n '/^#   TEXT=/,/^#     --lr/p' ../runs/gpt_10m.sh | sed 's/^# *//; s/\\$//; s/.*gpt_124m //' | tr '\n' ' ')
# shellcheck disable=SC2086  # words
"$ranklab" train --config ../runs/gpt_10m.toml --save x $settings --dry-run > "$work/plan" 2>&1 || fail "125M: $(cat "$work/plan")"
grep -q "^gpt2_124m: 124M parameters" "$work/plan" || fail "another model: $(head -1 "$work/plan")"
echo "all scripts are sound"
