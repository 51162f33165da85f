# Training runs as steps of the kit. Their metrics lie in $out/runs/NAME.jsonl, one JSON object a step.
# Sourced by run.sh.

# The settings that all runs share: generated text, so that no corpus is needed, and no sample at the end.
train_flags="--mock-data --sample-tokens 0 --eval-interval 0"

# Linear attention in every other layer of a small model, and heads that are clipped from the first step on.
linear="--linear-attention-type gated_delta_net --linear-attention-freq 2 --linear-num-key-heads 8 --linear-num-value-heads 16 --linear-key-head-dim 16 --linear-value-head-dim 16"
clipped="--qk-clip --qk-clip-threshold 0.5"
# A microbatch has as many tokens in every layout: of those beyond a capacity, the same are dropped.
capacity="--preset qwen3_moe_tiny --moe-expert-capacity-factor 1.25 --gbs 8 --mbs 2"
padded="$capacity --moe-pad-expert-input-to-capacity"
wire="--preset deepseek_v3_tiny --precision-recipe deepseek_v3 --fp8-accumulation fp32 --low-precision-dispatch"

# train NAME FLAG...: one process.
train() {
  local name=$1; shift
  "$program" train $train_flags --log-dir "$out/runs/$name" --json "$@" >"$out/runs/$name.jsonl"
}

# processes N FOLDER COMMAND...: N processes with torchrun's variables that share the GPU. Leaves their output in FOLDER
# (0, 0.err, 0.pid ...); fails when one of them does.
processes() {
  local count=$1 folder=$2 rank status=0 pids=() port; shift 2
  # Below the ports that the system hands out (32768 and up), and free now.
  while port=$((20000 + RANDOM % 12000)) && (: <>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do :; done
  mkdir -p "$folder"
  for ((rank = 0; rank < count; ++rank)); do
    RANKLAB_SHARE_GPU=1 RANK=$rank LOCAL_RANK=$rank WORLD_SIZE=$count LOCAL_WORLD_SIZE=$count GROUP_RANK=0 \
      MASTER_ADDR=127.0.0.1 MASTER_PORT=$port "$@" >"$folder/$rank" 2>"$folder/$rank.err" &
    pids+=($!)
    echo $! >"$folder/$rank.pid"
  done
  for ((rank = 0; rank < count; ++rank)); do
    wait "${pids[$rank]}" && continue
    status=$?
    echo "error: rank $rank left with exit code $status"
    tail -n 8 "$folder/$rank" "$folder/$rank.err"
  done
  return "$status"
}

# train_processes NAME N FLAG...
train_processes() {
  local name=$1 count=$2; shift 2
  processes "$count" "$out/$name" "$program" train --backend cuda $train_flags --log-dir "$out/runs/$name" --json "$@" || return
  cp "$out/$name/0" "$out/runs/$name.jsonl"
}

# same_curve NAME REFERENCE RELATIVE [STEPS]: losses (and gradient norms, ten times as wide) of two runs.
same_curve() { "$python" "$kit/curve.py" "$out/runs/$1.jsonl" "$out/runs/$2.jsonl" "${@:3}"; }

# speed NAME FLAG...: a run that is timed; its figures are medians over the later half of its steps.
speed() {
  local name=$1; shift
  train "$name" --no-trace "$@" && "$python" "$kit/speed.py" "$out/runs/$name.jsonl"
}
export -f train processes train_processes same_curve speed
export train_flags python
# All that this build has. Without a program there is nothing to try either.
schedules=$("$program" schedule list --json 2>/dev/null | sed -n 's/^ *"name": "\(.*\)",$/\1/p')
stages_flag() { case $1 in interleaved-1f1b | looped-bfs) echo "--vpp 2" ;; esac; }
