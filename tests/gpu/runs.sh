# Training runs as steps of the kit. Their metrics lie in $out/runs/NAME.jsonl, one JSON object a step.
# Sourced by run.sh.

# The settings that all runs share: generated text, so that no corpus is needed, and no sample at the end.
train_flags="--mock-data --sample-tokens 0 --eval-interval 0"

# train NAME FLAG...: one process.
train() {
  local name=$1; shift
  "$program" train $train_flags --log-dir "$out/runs/$name" --json "$@" >"$out/runs/$name.jsonl"
}

# train_processes NAME N FLAG...: N processes that share the GPU.
train_processes() {
  local name=$1 count=$2; shift 2
  RANKLAB_SHARE_GPU=1 "$program" launch --nproc-per-node "$count" --backend cuda $train_flags \
    --log-dir "$out/runs/$name" --json "$@" >"$out/runs/$name.jsonl"
}

# same_curve NAME REFERENCE RELATIVE: losses (and gradient norms, ten times as wide) of two runs.
same_curve() { "$python" "$kit/curve.py" "$out/runs/$1.jsonl" "$out/runs/$2.jsonl" "$3"; }

# speed NAME FLAG...: a run that is timed; its figures are medians over the later half of its steps.
speed() {
  local name=$1; shift
  train "$name" --no-trace "$@" && "$python" "$kit/speed.py" "$out/runs/$name.jsonl"
}
export -f train train_processes same_curve speed
export train_flags python
