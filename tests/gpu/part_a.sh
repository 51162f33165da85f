# Part A: one rank. The build is the right one, the kernels give their bits, a run's curve is the simulated rank's.
fingerprint() {
  nvidia-smi --query-gpu=name,driver_version,memory.total,compute_cap --format=csv,noheader
  "$python" -c 'import torch; print("torch", torch.__version__, "NCCL", torch.cuda.nccl.version())' 2>/dev/null
  uname -sr
  figure "CPU cores" "$(nproc)"
  figure driver "$(nvidia-smi --query-gpu=driver_version --format=csv,noheader | head -n 1)"
}
sees_gpu() { "$program" doctor; "$program" doctor --json | "$python" -c 'import json, sys; d = json.load(sys.stdin); sys.exit(0 if "NVIDIA" in json.dumps(d) else "error: doctor names no GPU")'; }
memory_checked() {
  command -v compute-sanitizer >/dev/null || { echo "no compute-sanitizer here"; return 77; }
  compute-sanitizer --tool "$1" --error-exitcode 9 "$(test_program "$2")" --gtest_brief=1
}
export -f fingerprint sees_gpu memory_checked

step fingerprint 30 fingerprint
step doctor 60 sees_gpu
step "memcheck cuda_rounding_test" 90 memory_checked memcheck cuda_rounding_test
step "racecheck cuda_rounding_test" 90 memory_checked racecheck cuda_rounding_test
# Rounding grows in training: the first steps are held tightly, the last loss loosely.
step "gpt_tiny fp32 on a simulated rank" 120 train tiny_cpu --world-size 1 --train-iters 30
step "gpt_tiny fp32 on the GPU" 120 train tiny_gpu --backend cuda --train-iters 30
step "gpt_tiny fp32: same curve" 20 same_curve tiny_gpu tiny_cpu 1e-5 10
# Passes that are replayed have the bits of passes that are not, past three warm-ups. With one microbatch a step the
# gradients stay in the graph's memory.
graph_of() {
  local name=$1; shift
  for kind in plain graph; do
    train "${name}_$kind" --backend cuda --world-size 1 --train-iters 10 --no-trace --deterministic "$@" \
      $([ $kind = graph ] && echo --cuda-graph) || return
  done
  same_curve "${name}_graph" "${name}_plain" 0
}
export -f graph_of
step "CUDA graph, fp32: same bits" 90 graph_of graph_fp32 --num-microbatches 4
step "CUDA graph, one microbatch a step: same bits" 90 graph_of graph_one
step "CUDA graph, bf16, recompute: same bits" 90 graph_of graph_bf16 --num-microbatches 4 --bf16 --recompute-granularity full
step "CUDA graph, fp16: same bits" 90 graph_of graph_fp16 --num-microbatches 4 --fp16
# in_shards TEST: a suite of training runs in four processes, each with every fourth of its tests. Ranks wait for the GPU
# and for each other most of the time, so that processes beside each other are done sooner.
in_shards() {
  local test=$1 shards=4 shard skipped=0 failed=0 one pids=()
  # After a time-out, too: what the shards said tells where they were.
  trap "cat '$out/$test'.?; rm -f '$out/$test'.?" EXIT
  trap 'exit 143' TERM
  for ((shard = 0; shard < shards; ++shard)); do
    GTEST_TOTAL_SHARDS=$shards GTEST_SHARD_INDEX=$shard "$(test_program "$test")" --gtest_brief=1 >"$out/$test.$shard" 2>&1 &
    pids+=($!)
  done
  for ((shard = 0; shard < shards; ++shard)); do
    wait "${pids[$shard]}"; one=$?
    case $one in 0) ;; 77) skipped=$((skipped + 1)) ;; *) failed=$one ;; esac
  done
  # Skipped (77) is what all shards skipped: one that alone found no GPU has failed.
  [ "$failed" = 0 ] || return "$failed"
  [ "$skipped" = 0 ] && return 0
  [ "$skipped" = "$shards" ] && return 77
  return 1
}
export -f in_shards
gpu_test() {
  case $1 in
    pipeline_gpu_test | expert_gpu_test | zero_gpu_test | precision_gpu_test) step "$1" 300 in_shards "$1" ;;
    *) step "$1" 300 "$(test_program "$1")" --gtest_brief=1 ;;
  esac
}
while read -r test; do gpu_test "$test"; done < <(cat "$root/.gpu/gpu_tests.txt" "$root/build/cuda/tests/gpu_tests.txt" 2>/dev/null | sort -u)
