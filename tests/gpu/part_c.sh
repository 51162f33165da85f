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

# One GPU at work: llama_1b with sequences of 8192, a sequence a microbatch.
llama="--preset llama_1b --micro-batch-size 1 --train-iters 6 --log-interval 1"
step "llama_1b bf16, a sequence a step" 150 speed llama_1b_gbs1 --backend cuda $llama --bf16 --global-batch-size 1
step "llama_1b bf16, 8 sequences a step" 150 speed llama_1b_gbs8 --backend cuda $llama --bf16 --global-batch-size 8
peer() { "$python" "$kit/peer_llama.py" "$@"; }
export -f peer
step "PyTorch eager, llama_1b, a sequence a step" 120 peer --sequences 1
step "PyTorch compiled, llama_1b, a sequence a step" 240 peer --sequences 1 --compile
