# Part B: NCCL between processes that share the GPU (RANKLAB_SHARE_GPU=1). The real NCCL code; slow transport, since NCCL
# takes them for different hosts.

# The last of COUNT ranks is killed, or stopped, in the middle of a run: the first must name it and leave within seconds.
show_ranks() {  # COUNT FOLDER
  local rank thread
  for ((rank = 0; rank < $1; ++rank)); do
    tail -n 4 "$2/$rank" "$2/$rank.err"
    for thread in /proc/"$(cat "$2/$rank.pid")"/task/*; do
      echo "thread $(cat "$thread/comm" "$thread/wchan" "$thread/syscall" 2>/dev/null | tr '\n' ' ')"
    done
  done
}
lost_rank() {  # SIGNAL COUNT FLAG...
  local signal=$1 count=$2 folder="$out/lost_$1_$2" begin victim; shift 2
  processes "$count" "$folder" "$program" train --backend cuda $train_flags --train-iters 1000000 --no-trace \
    --hang-timeout 3 --log-dir "$folder.run" "$@" &
  local group=$!
  for _ in $(seq 100); do sleep 0.2; [ "$(cat "$folder.run/metrics.jsonl" 2>/dev/null | wc -l)" -gt 10 ] && break; done
  victim=$(cat "$folder/$((count - 1)).pid")
  begin=$(date +%s.%N)
  kill "-$signal" "$victim"
  while kill -0 "$(cat "$folder/0.pid")" 2>/dev/null; do
    sleep 0.05
    [ "$(date +%s)" -lt $((${begin%.*} + 25)) ] && continue
    echo "error: rank 0 is still there after 25 s"
    show_ranks "$count" "$folder"
    return 1
  done
  figure "seconds until rank 0 had left" "$(awk -v a="$begin" -v b="$(date +%s.%N)" 'BEGIN { printf "%.1f", b - a }')" s
  kill -KILL "$victim" 2>/dev/null
  wait "$group"
  tail -n 3 "$folder/0.err"
  grep -q "rank $((count - 1))" "$folder/0.err" || { echo "error: rank 0 does not name rank $((count - 1))"; return 1; }
}
export -f lost_rank show_ranks

# Every layout beside one rank, in fp32: losses and gradient norms of ten steps.
nccl_layout() {  # NAME N FLAG...
  local name=$1 count=$2 reference=$3; shift 3
  step "NCCL $name" 40 layout_equals "nccl_${name// /_}" "$count" "$reference" "$@"
}
layout_equals() {
  local name=$1 count=$2 reference=$3; shift 3
  train_processes "$name" "$count" --train-iters 10 --hang-timeout 8 "$@" && same_curve "$name" "$reference" "${tolerance:-1e-4}"
}
export -f layout_equals
step "one rank, dense" 60 train nccl_one --backend cuda --train-iters 10
step "one rank, experts" 60 train nccl_one_moe --backend cuda --train-iters 10 --preset deepseek_v3_tiny
nccl_layout "dp 2" 2 nccl_one --dp 2
nccl_layout "tp 2" 2 nccl_one --tp 2
nccl_layout "dp 2 tp 2" 4 nccl_one --dp 2 --tp 2
nccl_layout "tp 4, products in pieces" 4 nccl_one --tp 4 --tp-comm-overlap
for schedule in $schedules; do nccl_layout "pp 2 $schedule" 2 nccl_one --pp 2 --num-microbatches 4 --pipeline-schedule "$schedule" $(stages_flag "$schedule"); done
for schedule in 1f1b zb-h1 dualpipe; do nccl_layout "pp 4 $schedule" 4 nccl_one --pp 4 --num-microbatches 8 --pipeline-schedule "$schedule"; done
for stage in 1 2 3; do nccl_layout "dp 2 ZeRO $stage" 2 nccl_one --dp 2 --zero-stage "$stage"; done
nccl_layout "dp 2, CUDA graph" 2 nccl_one --dp 2 --num-microbatches 2 --cuda-graph --no-trace
nccl_layout "dp 2 ZeRO 2, CUDA graph" 2 nccl_one --dp 2 --zero-stage 2 --num-microbatches 2 --cuda-graph --no-trace
nccl_layout "dp 2 tp 2, CUDA graph" 4 nccl_one --dp 2 --tp 2 --num-microbatches 2 --cuda-graph --no-trace
for exchange in all_gather a2a; do nccl_layout "cp 2 $exchange, CUDA graph" 2 nccl_one --cp 2 --cp-comm-type $exchange --num-microbatches 2 --cuda-graph --no-trace; done
for schedule in 1f1b interleaved-1f1b zb-h1 zb-v dualpipe; do nccl_layout "pp 2 $schedule, CUDA graphs" 2 nccl_one --pp 2 --num-microbatches 4 --pipeline-schedule "$schedule" $(stages_flag "$schedule") --cuda-graph --no-trace; done
dropout="--hidden-dropout 0.1 --attention-dropout 0.1"
step "one rank, dropout" 60 train nccl_one_dropout --backend cuda --train-iters 10 $dropout
nccl_layout "tp 2, dropout, CUDA graph" 2 nccl_one_dropout --tp 2 --num-microbatches 2 --cuda-graph --no-trace $dropout
for stage in 2 3; do nccl_layout "dp 2 ZeRO $stage, each microbatch reduced" 2 nccl_one --dp 2 --zero-stage "$stage" --num-microbatches 2 --grad-sync microbatch; done
step "one rank, linear attention, clipped heads" 60 train nccl_one_linear --backend cuda --train-iters 10 $linear $clipped
nccl_layout "tp 2, linear attention, clipped heads" 2 nccl_one_linear --tp 2 $linear $clipped
nccl_layout "cp 2, linear attention, clipped heads" 2 nccl_one_linear --cp 2 $linear $clipped
nccl_layout "pp 2, linear attention, clipped heads" 2 nccl_one_linear --pp 2 --num-microbatches 4 $linear $clipped
step "one rank, experts with a capacity" 60 train nccl_one_capacity --backend cuda --train-iters 10 $capacity
nccl_layout "ep 2, padded experts" 2 nccl_one_capacity --ep 2 $padded
nccl_layout "ep 2, padded experts, CUDA graph" 2 nccl_one_capacity --ep 2 --cuda-graph --no-trace $padded
nccl_layout "ep 2" 2 nccl_one_moe --preset deepseek_v3_tiny --ep 2
nccl_layout "ep 2, interleaved microbatches" 2 nccl_one_moe --preset deepseek_v3_tiny --ep 2 --num-microbatches 4 --overlap-moe-expert-parallel-comm
nccl_layout "pp 2 ep 2, interleaved microbatches" 4 nccl_one_moe --preset deepseek_v3_tiny --pp 2 --ep 2 --num-microbatches 4 --overlap-moe-expert-parallel-comm
nccl_layout "tp 2, attention recomputed" 2 nccl_one --tp 2 --recompute-granularity selective
# What travels in 8 bits, packed and unpacked by the GPU. A number that rounds to its other neighbour changes a loss.
step "one rank, tokens in 8 bits" 60 train nccl_one_wire --backend cuda --train-iters 10 $wire
tolerance=2e-2 nccl_layout "ep 2, tokens in 8 bits" 2 nccl_one_wire --ep 2 $wire
tolerance=2e-2 nccl_layout "dp 2 ZeRO 3, weights gathered in 8 bits" 2 nccl_one_wire --dp 2 --zero-stage 3 --fp8-param-gather $wire
step "a killed rank is named, dp 2" 40 lost_rank KILL 2 --dp 2
step "a killed rank is named, pp 3" 40 lost_rank KILL 3 --pp 3 --num-layers 6 --global-batch-size 12
step "a stopped rank is named, dp 2" 40 lost_rank STOP 2 --dp 2
for count in 2 3 4; do
  step "NCCL conformance, $count ranks" 150 processes "$count" "$out/conformance_$count" "$(test_program nccl_conformance_test)" --gtest_brief=1
done
