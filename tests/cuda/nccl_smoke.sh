#!/usr/bin/env bash
# The NCCL backend between processes, also on a machine with one GPU, which they then share (RANKLAB_SHARE_GPU=1).
#   tests/cuda/nccl_smoke.sh BUILD OUT [PART ...]
# BUILD: the build folder (build/cuda). OUT: a folder for the logs. PARTS: conformance, layouts, schedules2, schedules4,
# hang, kill; all of them unless named. Each step has a time-out of its own and prints a row; a failure never stops the
# rest. Training is right when its losses are those of the same run on simulated ranks.
set -u
build=$(cd "$1" && pwd) || exit 2
mkdir -p "$2" && out=$(cd "$2" && pwd) || exit 2
shift 2
parts=("$@")
[ ${#parts[@]} -gt 0 ] || parts=(conformance layouts schedules2 schedules4 hang kill)
step_limit=${STEP_LIMIT:-120}
export RANKLAB_CUDA_MODULE=$build/bin/libranklab_cuda.so
ranklab=$build/bin/ranklab
failed=0

row() { printf '%-8s %-40s %5ss  %s\n' "$1" "$2" "$3" "$4"; }

# start N LOG COMMAND...: one process per rank; their numbers in $pids.
start() {
  local size=$1 log=$2
  shift 2
  local port=$((20000 + RANDOM % 12000))
  pids=()
  for ((rank = 0; rank < size; ++rank)); do
    env RANKLAB_SHARE_GPU=1 RANK=$rank WORLD_SIZE=$size LOCAL_RANK=$rank LOCAL_WORLD_SIZE=$size \
      MASTER_ADDR=127.0.0.1 MASTER_PORT=$port timeout -k 5 "$step_limit" "$@" > "$log.rank$rank" 2>&1 &
    pids+=($!)
  done
}
# The largest exit code of all.
finish() {
  code=0
  for pid in "${pids[@]}"; do
    wait "$pid"
    local one=$?
    [ $one -le $code ] || code=$one
  done
}

# The process that `timeout` runs.
child_of() { tr -d ' ' < "/proc/$1/task/$1/children"; }
# Until the run has made three steps.
wait_for_steps() {
  for ((i = 0; i < 120; ++i)); do
    [ "$(wc -l < "$1/metrics.jsonl" 2> /dev/null || echo 0)" -ge 3 ] && return
    sleep 0.5
  done
}

conformance() {
  local size=$1 log=$out/conformance_$1 begin=$SECONDS
  start "$size" "$log" "$build/tests/cuda/nccl_conformance_test"
  finish
  local passed
  passed=$(grep -c '^\[       OK' "$log.rank0")
  if [ $code = 0 ] && [ "$passed" -gt 20 ]; then
    row pass "conformance, $size ranks" $((SECONDS - begin)) "$passed cases"
  else
    failed=1
    row FAIL "conformance, $size ranks" $((SECONDS - begin)) "exit $code; see $log.rank*: $(grep -h -m1 -E 'FAILED|error' "$log".rank* | head -1)"
  fi
}

losses() { sed -n 's/.*"loss":\([-0-9.e+]*\).*/\1/p' "$1/metrics.jsonl" 2> /dev/null | tr '\n' ' '; }

# train NAME SIZE FLAGS...: the losses of five steps, on GPUs and simulated.
train() {
  local name=$1 size=$2 log=$out/$1 begin=$SECONDS
  shift 2
  local flags=(train --mock-data --train-iters 5 --sample-tokens 0 --eval-interval 0 --lr-warmup-iters 1 "$@")
  rm -rf "$log.nccl" "$log.sim"
  start "$size" "$log" "$ranklab" "${flags[@]}" --backend cuda --log-dir "$log.nccl"
  finish
  timeout 120 env -u RANK "$ranklab" "${flags[@]}" --world-size "$size" --log-dir "$log.sim" > "$log.simulated" 2>&1
  local got want far
  got=$(losses "$log.nccl")
  want=$(losses "$log.sim")
  far=$(awk -v a="$got" -v b="$want" 'BEGIN { n = split(a, x); m = split(b, y); worst = n == m && n > 0 ? 0 : 99
    for (i = 1; i <= n; ++i) { d = x[i] - y[i]; if (d < 0) d = -d; if (d > worst) worst = d }; print worst }')
  if [ $code = 0 ] && awk -v d="$far" 'BEGIN { exit !(d < 0.002) }'; then
    row pass "$name" $((SECONDS - begin)) "losses $got(differ by $far)"
  else
    failed=1
    row FAIL "$name" $((SECONDS - begin)) "exit $code; got $got want $want; $(grep -h -m1 'error:' "$log".rank* | head -1)"
  fi
}

schedules() {
  local pp=$1
  for schedule in gpipe 1f1b interleaved-1f1b looped-bfs zb-h1 zb-h2 zb-2p zb-v v-half v-min dualpipe dualpipe-v; do
    local more=()
    case $schedule in interleaved-1f1b | looped-bfs) more=(--vpp 2) ;; esac
    train "pp${pp}_$schedule" "$pp" --pp "$pp" --num-layers 8 --global-batch-size 16 --num-microbatches 8 \
      --pipeline-schedule "$schedule" "${more[@]}"
  done
}

# A rank that stops taking part is found by the hang time-out; the one that waits names the call.
hang() {
  local log=$out/hang begin=$SECONDS
  start 2 "$log" "$ranklab" train --mock-data --train-iters 100000 --sample-tokens 0 --eval-interval 0 --dp 2 \
    --backend cuda --hang-timeout 3 --log-dir "$log.run"
  wait_for_steps "$log.run"
  # Stopped, it gives no sign of life either; which is found first is a matter of tenths of a second.
  local victim
  victim=$(child_of "${pids[1]}")
  kill -STOP "$victim"
  local stopped=$SECONDS
  wait "${pids[0]}"
  local code0=$?
  kill -KILL "$victim" 2> /dev/null
  finish
  local text
  text=$(grep -h -m1 'error:' "$log.rank0")
  case "$code0:$text" in
    [56]:*"no end of"* | 5:*"rank 1 is gone"*) row pass "a stopped rank is found" $((SECONDS - begin)) "$((SECONDS - stopped)) s, exit $code0: $text" ;;
    *) failed=1; row FAIL "a stopped rank is found" $((SECONDS - begin)) "exit $code0: $text" ;;
  esac
}

# kill -9 of one rank: the others name it and leave.
killed() {
  local size=$1 log=$out/kill_$1 begin=$SECONDS
  start "$size" "$log" "$ranklab" train --mock-data --train-iters 100000 --sample-tokens 0 --eval-interval 0 \
    --backend cuda --log-dir "$log.run" "${@:2}"
  wait_for_steps "$log.run"
  local victim last=$((size - 1))
  victim=$(child_of "${pids[last]}")
  kill -KILL "$victim"
  local struck=$SECONDS
  finish
  local took=$((SECONDS - struck)) named
  named=$(grep -l "rank $last is gone" "$log".rank* | wc -l)
  if [ "$named" = $((size - 1)) ] && [ $took -le 12 ]; then
    row pass "kill -9, $size ranks $2 $3" $((SECONDS - begin)) "named by $named ranks, all gone after $took s"
  else
    failed=1
    row FAIL "kill -9, $size ranks $2 $3" $((SECONDS - begin)) "named by $named of $((size - 1)), gone after $took s; $(grep -h -m1 'error:' "$log".rank0)"
  fi
}

for part in "${parts[@]}"; do
  case $part in
    conformance) for size in 2 3 4; do conformance $size; done ;;
    layouts)
      train dp2 2 --dp 2
      train tp2 2 --tp 2
      train dp2_tp2 4 --dp 2 --tp 2
      train dp2_pp2 4 --dp 2 --pp 2
      for stage in 1 2 3; do train "zero${stage}_dp2" 2 --dp 2 --zero-stage $stage; done
      train ep4_deepseek 4 --preset deepseek_v3_tiny --dp 4 --ep 4
      train bf16_dp2_tp2 4 --dp 2 --tp 2 --bf16
      ;;
    schedules2) schedules 2 ;;
    schedules4) schedules 4 ;;
    hang) hang ;;
    kill)
      killed 2 --dp 2
      killed 3 --pp 3 --num-layers 6 --global-batch-size 12
      ;;
    *) echo "no part $part" >&2; exit 2 ;;
  esac
done
exit $failed
