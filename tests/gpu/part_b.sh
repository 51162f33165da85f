# Part B: NCCL between processes that share the GPU (RANKLAB_SHARE_GPU=1). The real NCCL code; slow transport, since NCCL
# takes them for different hosts.

# processes N COMMAND...: N processes with torchrun's variables; fails when one does.
processes() {
  local count=$1 rank status=0 pids=(); shift
  local port=$((20000 + RANDOM % 20000))
  for ((rank = 0; rank < count; ++rank)); do
    RANKLAB_SHARE_GPU=1 RANK=$rank LOCAL_RANK=$rank WORLD_SIZE=$count LOCAL_WORLD_SIZE=$count GROUP_RANK=0 MASTER_ADDR=127.0.0.1 MASTER_PORT=$port \
      "$@" >"$out/process_$rank.log" 2>&1 &
    pids+=($!)
  done
  for ((rank = 0; rank < count; ++rank)); do
    wait "${pids[$rank]}" || { status=$?; echo "error: rank $rank left with exit code $status"; }
  done
  for ((rank = 0; rank < count; ++rank)); do echo "--- rank $rank"; tail -n 25 "$out/process_$rank.log"; rm -f "$out/process_$rank.log"; done
  return "$status"
}
# A rank is killed in the middle of a run: the others must name it and leave within seconds.
killed_rank() {
  local count=2 begin
  (RANKLAB_SHARE_GPU=1 "$program" launch --nproc-per-node "$count" --backend cuda $train_flags --train-iters 100000 --no-trace --dp "$count" \
    --log-dir "$out/runs/killed" >"$out/killed.log" 2>&1; echo "exit code $?" >>"$out/killed.log") &
  for _ in $(seq 60); do sleep 0.5; grep -q '^ *1[0-9] ' "$out/killed.log" && break; done
  local victim; victim=$(pgrep -f 'ranklab.*train.*--train-iters 100000' | tail -n 1)
  begin=$(date +%s.%N)
  kill -9 "$victim"
  wait
  figure "seconds until all had left" "$(awk -v a="$begin" -v b="$(date +%s.%N)" 'BEGIN { printf "%.1f", b - a }')" s
  cat "$out/killed.log"
  grep -qi 'rank 1\|rank 0' "$out/killed.log" && ! grep -q 'exit code 0' "$out/killed.log"
}
export -f processes killed_rank

for count in 2 3 4; do
  step "NCCL conformance, $count ranks" 150 processes "$count" "$(test_program nccl_conformance_test)" --gtest_brief=1
done

# Every layout beside one rank, in fp32: losses and gradient norms of ten steps.
nccl_layout() {  # NAME N FLAG...
  local name=$1 count=$2 reference=$3; shift 3
  step "NCCL $name" 60 layout_equals "nccl_${name// /_}" "$count" "$reference" "$@"
}
layout_equals() {
  local name=$1 count=$2 reference=$3; shift 3
  train_processes "$name" "$count" --train-iters 10 "$@" && same_curve "$name" "$reference" 1e-4
}
export -f layout_equals
step "one rank, dense" 60 train nccl_one --backend cuda --train-iters 10
step "one rank, experts" 60 train nccl_one_moe --backend cuda --train-iters 10 --preset deepseek_v3_tiny
nccl_layout "dp 2" 2 nccl_one --dp 2
nccl_layout "tp 2" 2 nccl_one --tp 2
nccl_layout "dp 2 tp 2" 4 nccl_one --dp 2 --tp 2
for schedule in gpipe 1f1b zb-h1 zb-h2; do nccl_layout "pp 2 $schedule" 2 nccl_one --pp 2 --pipeline-schedule "$schedule"; done
for stage in 1 2 3; do nccl_layout "dp 2 ZeRO $stage" 2 nccl_one --dp 2 --zero-stage "$stage"; done
nccl_layout "ep 2" 2 nccl_one_moe --preset deepseek_v3_tiny --ep 2
step "a killed rank is named" 60 killed_rank
