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
# Stochastic rounding reads from the GPU's memory where it draws its numbers.
step "CUDA graph, nvfp4: same bits" 90 graph_of graph_nvfp4 --num-microbatches 4 --precision-recipe nvfp4
# Of experts, whose inputs all have the size of their capacity.
step "CUDA graph, padded experts, bf16: same bits" 90 graph_of graph_experts --bf16 $padded
step "CUDA graph, prediction modules, bf16: same bits" 90 graph_of graph_mtp --num-microbatches 4 --bf16 --mtp-num-layers 2
# Of a model with linear attention, whose clipped heads are those of the other layers.
step "CUDA graph, linear attention, clipped heads: same bits" 90 graph_of graph_linear --num-microbatches 4 --bf16 $linear $clipped
# What models and steps may have beside gpt_tiny's, on the GPU and on a simulated rank: the curve in fp32. Rounding may
# send a token to another expert.
feature_curve() {  # NAME RELATIVE FLAG...
  local name=$1 relative=$2; shift 2
  train "${name}_cpu" --world-size 1 --train-iters 10 "$@" &&
    train "${name}_gpu" --backend cuda --world-size 1 --train-iters 10 "$@" && same_curve "${name}_gpu" "${name}_cpu" "$relative"
}
export -f feature_curve
step "linear attention, gated outputs: same curve" 90 feature_curve feature_linear 1e-4 $linear --attention-output-gate
step "Qwen3-Next: same curve" 90 feature_curve feature_qwen3_next 1e-3 --preset qwen3_next_tiny
# In bf16 the products of experts are grouped ones.
step "experts in bf16: same curve" 90 feature_curve feature_experts_bf16 2e-2 --preset qwen3_moe_tiny --bf16
step "experts in bf16, ZeRO 3: same curve" 90 feature_curve feature_experts_zero3 2e-2 --preset qwen3_moe_tiny --bf16 --zero-stage 3
step "clipped heads: same curve" 90 feature_curve feature_clip 1e-4 $clipped
step "clipped heads of latent attention: same curve" 90 feature_curve feature_clip_mla 1e-3 --preset deepseek_v3_tiny $clipped
step "Llama 4, chunks: same curve" 90 feature_curve feature_llama4 1e-3 --preset llama4_tiny
step "sinks, windows: same curve" 90 feature_curve feature_sinks 1e-4 --softmax-type learnable --window-size 40 --window-attn-skip-freq 2
step "dropout: same curve" 90 feature_curve feature_dropout 1e-4 --hidden-dropout 0.1 --attention-dropout 0.1
# same_number FILE FILE KEY...: what stands there in both, in their last lines that have it.
same_number() {
  "$python" - "$@" <<'EOF'
import json, sys

def found(path):
    text = open(path).read()
    for each in [text] + text.splitlines()[::-1]:
        try:
            value = json.loads(each)
            for key in sys.argv[3:]:
                value = value[key]
            return value
        except (ValueError, KeyError, TypeError):
            pass
    sys.exit(f"error: {path} has no {' '.join(sys.argv[3:])}")

one, other = found(sys.argv[1]), found(sys.argv[2])
print(" ".join(sys.argv[3:]), one, other)
sys.exit(0 if abs(one / other - 1) < 1e-4 else "error: the numbers differ")
EOF
}
# A text of its own to train on and another for validation.
validation_data() {
  local folder="$out/validation" device
  mkdir -p "$folder"
  "$python" - "$folder" <<'EOF'
import random, sys
random.seed(1)
words = ["".join(random.choice("abcdefghij") for _ in range(random.randint(2, 7))) for _ in range(300)]
for name in ("train", "valid"):
    open(f"{sys.argv[1]}/{name}.txt", "w").write(" ".join(random.choice(words) for _ in range(30000)))
EOF
  for device in cpu cuda; do
    "$program" train --sample-tokens 0 --data-path "$folder/train.txt" --valid-data-path "$folder/valid.txt" --eval-interval 4 --eval-iters 2 \
      --train-iters 8 --world-size 1 --device $device --no-trace --json --log-dir "$folder/$device" >"$folder/$device.jsonl" || return
  done
  same_number "$folder/cpu.jsonl" "$folder/cuda.jsonl" validation_loss
}
export -f same_number validation_data
step "validation data of their own" 90 validation_data
# A model of two kinds of layers goes out to Hugging Face's files and comes back, and has the same loss on both.
hugging_face() {
  local folder="$out/hugging_face" device text='In the beginning God created the heaven and the earth.'
  rm -rf "$folder"
  train hugging_face --backend cuda --world-size 1 --train-iters 4 --preset qwen3_next_tiny --save "$folder/trained" --save-interval 4 &&
    "$program" ckpt export-hf "$folder/trained" "$folder/hf" && "$program" ckpt import-hf "$folder/hf" "$folder/back" || return
  echo "$text" >"$folder/text"
  for device in cpu cuda; do
    "$program" eval --load "$folder/back" --text "$folder/text" --device $device --json >"$folder/$device.json" || return
  done
  same_number "$folder/cpu.json" "$folder/cuda.json" data text nats_per_token
}
export -f hugging_face
step "a hybrid model to Hugging Face and back" 120 hugging_face
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
