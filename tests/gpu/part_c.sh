# Part C: rank threads on the GPU, and speed.

# Every layout on eight rank threads beside one.
thread_layout() {  # NAME REFERENCE FLAG...
  local name=$1 reference=$2; shift 2
  step "threads $name" 60 threads_equal "threads_${name// /_}" "$reference" "$@"
}
threads_equal() {
  local name=$1 reference=$2; shift 2
  train "$name" --device cuda --train-iters 10 "$@" && same_curve "$name" "$reference" 1e-4
}
export -f threads_equal
step "one rank thread, dense" 60 train threads_one --device cuda --world-size 1 --train-iters 10
step "one rank thread, experts" 60 train threads_one_moe --device cuda --world-size 1 --train-iters 10 --preset deepseek_v3_tiny
thread_layout "dp 8" threads_one --dp 8
thread_layout "tp 8" threads_one --tp 8 --num-attention-heads 8
thread_layout "dp 2 tp 2 pp 2" threads_one --dp 2 --tp 2 --pp 2
for schedule in $schedules; do thread_layout "pp 2 dp 4 $schedule" threads_one --pp 2 --dp 4 --num-microbatches 4 --pipeline-schedule "$schedule" $(stages_flag "$schedule"); done
for stage in 1 2 3; do thread_layout "dp 8 ZeRO $stage" threads_one --dp 8 --zero-stage "$stage"; done
thread_layout "ep 8" threads_one_moe --preset deepseek_v3_tiny --ep 8
thread_layout "ep 4 tp 2" threads_one_moe --preset deepseek_v3_tiny --ep 4 --tp 2
thread_layout "dp 8 ZeRO 3, each microbatch reduced" threads_one --dp 8 --zero-stage 3 --num-microbatches 2 --grad-sync microbatch
step "one rank thread, linear attention, clipped heads" 60 train threads_one_linear --device cuda --world-size 1 --train-iters 10 --num-attention-heads 8 $linear $clipped
thread_layout "dp 2 tp 2 pp 2, linear attention, clipped heads" threads_one_linear --dp 2 --tp 2 --pp 2 --num-attention-heads 8 $linear $clipped
thread_layout "cp 4 tp 2, linear attention, clipped heads" threads_one_linear --cp 4 --tp 2 --num-attention-heads 8 $linear $clipped
# What a rank thread on the GPU books is what it books on the host, but for kernels that differ.
same_memory() {
  train memory_cpu --world-size 8 --dp 8 --zero-stage 2 --train-iters 4 "$@" && train memory_gpu --device cuda --world-size 8 --dp 8 --zero-stage 2 --train-iters 4 "$@" &&
    "$python" "$kit/memory.py" "$out/runs/memory_gpu.jsonl" "$out/runs/memory_cpu.jsonl" --within 0.3
}
export -f same_memory
step "threads dp 8, the memory that is booked" 60 same_memory
for recipe in fp8_current mxfp8 nvfp4; do
  step "threads dp 8 $recipe" 60 train "threads_$recipe" --device cuda --train-iters 10 --bf16 --precision-recipe "$recipe" --dp 8
done

# One GPU at work: llama_1b with sequences of 8192, a sequence a microbatch.
llama="--preset llama_1b --micro-batch-size 1 --train-iters 6 --log-interval 1"
step "llama_1b bf16, a sequence a step" 150 speed llama_1b_gbs1 --backend cuda $llama --bf16 --global-batch-size 1
step "llama_1b bf16, 8 sequences a step" 150 speed llama_1b_gbs8 --backend cuda $llama --bf16 --global-batch-size 8
# The largest logits of attention cost products of their own, but no scores of a whole sequence.
clipped_speed() {
  speed llama_1b_clip --backend cuda $llama --bf16 --global-batch-size 1 --qk-clip &&
    "$python" "$kit/memory.py" "$out/runs/llama_1b_clip.jsonl" "$out/runs/llama_1b_gbs1.jsonl" --more-gib 1
}
export -f clipped_speed
export llama
step "llama_1b bf16, a sequence a step, largest logits" 150 clipped_speed
# Linear attention in three layers of four, with heads as Qwen3-Next has.
step "llama_1b bf16, a sequence a step, linear attention" 150 speed llama_1b_linear --backend cuda $llama --bf16 --global-batch-size 1 \
  --linear-attention-type gated_delta_net --linear-attention-freq 4 --linear-num-key-heads 16 --linear-num-value-heads 32 --linear-key-head-dim 128 --linear-value-head-dim 128
# Experts, whose products are grouped: 64 of them in each layer.
step "qwen3_30b_a3b, 2 layers, 64 experts, bf16, 4 sequences a step" 150 speed experts_bf16 --backend cuda --preset qwen3_30b_a3b --num-layers 2 \
  --num-experts 64 --micro-batch-size 1 --global-batch-size 4 --train-iters 8 --log-interval 1 --bf16
# The same with a CUDA graph: more steps, since the first passes are warm-ups and the recording.
graph="--preset llama_1b --micro-batch-size 1 --train-iters 10 --log-interval 1 --cuda-graph"
step "llama_1b bf16, a sequence a step, CUDA graph" 150 speed llama_1b_graph_gbs1 --backend cuda $graph --bf16 --global-batch-size 1
step "llama_1b bf16, 8 sequences a step, CUDA graph" 150 speed llama_1b_graph_gbs8 --backend cuda $graph --bf16 --global-batch-size 8
# Layers that compute for less time than launching them takes.
small="--preset gpt_10m --micro-batch-size 1 --global-batch-size 8 --train-iters 40 --log-interval 1 --bf16"
step "gpt_10m bf16, 8 sequences a step" 90 speed gpt_10m_plain --backend cuda $small
step "gpt_10m bf16, 8 sequences a step, CUDA graph" 90 speed gpt_10m_graph --backend cuda $small --cuda-graph
# FP8 beside bf16, where products are most of a step: layers of llama_8b, as many as fit with their optimizer's states
# (about 5 GiB each, and 22 GiB for the vocabulary). FP8 recipes keep gradients in fp32, so bf16 runs with these, too.
gpu_mib=$(nvidia-smi --query-gpu=memory.total --format=csv,noheader,nounits 2>/dev/null | head -n 1)
[[ $gpu_mib =~ ^[0-9]+$ ]] || gpu_mib=0
layers=$(((gpu_mib / 1024 - 22) * 10 / 52))
layers=$((layers < 1 ? 1 : layers > 32 ? 32 : layers))
large="--preset llama_8b --num-layers $layers --micro-batch-size 1 --global-batch-size 1 --train-iters 8 --log-interval 1 --bf16"
step "llama_8b, $layers layers, bf16" 90 speed llama_8b_bf16 --backend cuda $large
step "llama_8b, $layers layers, bf16 with fp32 gradients" 90 speed llama_8b_bf16_fp32 --backend cuda $large --main-grads-dtype fp32
for recipe in fp8_current fp8_rowwise deepseek_v3; do
  step "llama_8b, $layers layers, $recipe" 90 speed "llama_8b_$recipe" --backend cuda $large --precision-recipe $recipe
done
# The same where the optimizer's step, which FP8 leaves as it is, is shared by four sequences.
four=${large/--global-batch-size 1 --train-iters 8/--global-batch-size 4 --train-iters 6}
step "llama_8b, $layers layers, 4 sequences a step, bf16 with fp32 gradients" 90 speed llama_8b_four_bf16_fp32 --backend cuda $four --main-grads-dtype fp32
step "llama_8b, $layers layers, 4 sequences a step, fp8_current" 90 speed llama_8b_four_fp8_current --backend cuda $four --precision-recipe fp8_current
hopper_sums() {
  [ "$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -n 1)" = 9.0 ] || { echo "no GPU of compute capability 9.0"; return 77; }
  speed llama_8b_hopper --backend cuda $large --precision-recipe fp8_current --fp8-accumulation hopper
}
export -f hopper_sums
export large
step "llama_8b, $layers layers, fp8_current, sums of Hopper's units" 90 hopper_sums
# Eight rank threads beside one, with the same batch.
shared="--device cuda --preset llama_1b --num-layers 3 --vocab-size 32000 --micro-batch-size 1 --global-batch-size 8 --train-iters 8 --log-interval 1 --bf16"
step "llama_1b, 3 layers, one rank thread" 90 speed shared_one $shared --world-size 1
step "llama_1b, 3 layers, 8 rank threads, dp 8" 90 speed shared_dp8 $shared --dp 8
profile() {
  train llama_1b_profile --backend cuda $llama --bf16 --global-batch-size 1 --profile --profile-step-start 3 --profile-step-end 4 &&
    "$python" "$kit/kernels.py" "$out/runs/llama_1b_profile/profile.json" | tee "$out/kernels.txt"
}
export -f profile
export llama
step "llama_1b bf16, the kernels of a step" 150 profile
# A profile by this GPU's own kernels, and what the planner says with it of llama_1b's run above.
calibrate() {
  "$program" bench hardware --device cuda --out "$out/mine.toml" --force || return
  "$program" plan run --preset llama_1b --micro-batch-size 1 --global-batch-size 1 --world-size 1 --bf16 \
    --software ranklab --hardware "$out/mine.toml" --json >"$out/planned.json" || return
  "$python" "$kit/planned.py" "$out/runs/llama_1b_gbs1.jsonl" <"$out/planned.json"
}
export -f calibrate
step "a hardware profile of this GPU, and a plan with it" 120 calibrate
step "fused kernels beside ATen's" 100 "$program" bench kernels
peer() { "$python" "$kit/peer_llama.py" "$@"; }
export -f peer
step "PyTorch eager, llama_1b, a sequence a step" 120 peer --sequences 1
step "PyTorch compiled, llama_1b, a sequence a step" 240 peer --sequences 1 --compile
