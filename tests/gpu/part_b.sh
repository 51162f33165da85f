# Part B: NCCL between processes that share the GPU (RANKLAB_SHARE_GPU=1). The real NCCL code; slow transport, since NCCL
# takes them for different hosts.

# A rank is killed in the middle of a run: the other one must name it and leave within seconds.
killed_rank() {
  local status
  mkdir -p "$out/killed"
  processes 2 "$out/killed" "$program" train --backend cuda $train_flags --dp 2 --train-iters 1000000 --no-trace --log-dir "$out/runs/killed" &
  local group=$! begin victim
  for _ in $(seq 80); do sleep 0.25; [ "$(grep -c . "$out/killed/0" 2>/dev/null || echo 0)" -gt 20 ] && break; done
  victim=$(cat "$out/killed/1.pid")
  begin=$(date +%s.%N)
  kill -9 "$victim"
  wait "$group"; status=$?
  figure "seconds until the other had left" "$(awk -v a="$begin" -v b="$(date +%s.%N)" 'BEGIN { printf "%.1f", b - a }')" s
  tail -n 5 "$out/killed/0" "$out/killed/0.err"
  [ "$status" != 0 ] && grep -q 'rank 1' "$out/killed/0.err"
}
export -f killed_rank

for count in 2 3 4; do
  step "NCCL conformance, $count ranks" 150 processes "$count" "$out/conformance_$count" "$(test_program nccl_conformance_test)" --gtest_brief=1
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
for schedule in $schedules; do nccl_layout "pp 2 $schedule" 2 nccl_one --pp 2 --num-microbatches 4 --pipeline-schedule "$schedule" $(stages_flag "$schedule"); done
for schedule in 1f1b zb-h1 dualpipe; do nccl_layout "pp 4 $schedule" 4 nccl_one --pp 4 --num-microbatches 8 --pipeline-schedule "$schedule"; done
for stage in 1 2 3; do nccl_layout "dp 2 ZeRO $stage" 2 nccl_one --dp 2 --zero-stage "$stage"; done
nccl_layout "ep 2" 2 nccl_one_moe --preset deepseek_v3_tiny --ep 2
step "a killed rank is named" 60 killed_rank
