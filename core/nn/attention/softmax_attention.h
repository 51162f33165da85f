// The softmax part of causal attention on heads, forward and backward, by the fused kernel of the tensors' device. On a
// CPU this is ATen's flash attention. On a GPU it is, for 16-bit tensors, flash attention (Dao 2023, arXiv 2307.08691)
// or cuDNN's kernel, which read grouped keys and values without a copy per query head (only flash attention supports
// windows), and for fp32 ATen's memory-efficient kernel. Where a GPU has no kernel (windows in fp32, fp64, heads that
// are too wide or whose rows are not aligned), ATen's scaled_dot_product_attention runs with a mask under autograd.
// Memory: linear in S, except for that mask and, in fp64, the scores, which are kept for backward. Cost: as in
// attention.h, which charges the same for all kernels. Thread rule: choose the kernel before ranks start; everything
// else on its rank's thread, where autograd does not record.
#pragma once
#include <ATen/core/Tensor.h>

#include <optional>
#include <string_view>

namespace ranklab {

// The kernel for 16-bit tensors on a GPU; for a CPU and for fp32 there is only one each. kAuto: cuDNN's kernel where it
// is faster (long sequences on Hopper and later), else flash attention, whose backward can be made deterministic.
// kUnfused, on any device: all scores in memory (unfused_attention.h).
enum class GpuAttention { kAuto, kFlash, kCudnn, kUnfused };
// takes the names of --attention-backend; any other name gives kAuto
GpuAttention gpu_attention_named(std::string_view backend);
void use_gpu_attention(GpuAttention kernel);  // kAuto initially
GpuAttention gpu_attention();

// Whether there is a fused kernel for tensors like x with heads of this width.
bool has_softmax_attention(const at::Tensor& x, int64_t head_dim);

// q [B, heads, S, D], k and v [B, groups, S, D], of any strides as long as rows are dense; or the gradients of these.
struct SoftmaxHeads {
  at::Tensor q, k, v;
};
// What autograd recorded where there is no fused kernel: backward goes through this graph instead of running forward
// again.
struct FollowedHeads {
  SoftmaxHeads in;
  at::Tensor out;

  bool defined() const { return out.defined(); }
};
struct SoftmaxedHeads {
  at::Tensor out;          // [B, heads, S, D]; on a GPU with the strides of q
  at::Tensor log_sum_exp;  // one number per query, for backward
  FollowedHeads followed = {};
};
// How scores are computed from the products of queries and keys.
struct ScoreRule {
  std::optional<double> scale = std::nullopt;  // unset: 1 / sqrt(D)
  // positions that a query attends to, including its own (window_attention.h); 0 or at least S: no window
  int64_t window = 0;
  double cap = 0;              // soft cap on scores (tiled_attention.h); 0: none
  at::Tensor sinks = {};       // [heads], one per query head (attention_sinks.h); undefined: none
  at::Tensor max_logits = {};  // [heads], one per query head, raised in place (max_logit.h); undefined: not needed

  bool has_window(int64_t seq) const { return window > 0 && window < seq; }
};
// A caller of softmax_attention_grad() gets the sinks' gradient from sink_grad(). `for_backward`:
// softmax_attention_grad() will be called with the result, at most once. REQUIRES: has_row_kernels(in.q).
SoftmaxedHeads softmax_attention(const SoftmaxHeads& in, const ScoreRule& rule = {}, bool for_backward = true);
SoftmaxHeads softmax_attention_grad(const SoftmaxHeads& in, const SoftmaxedHeads& forward, const at::Tensor& grad_out,
                                    const ScoreRule& rule = {});

// Only the output, in differentiable ops, on any device. REQUIRES: as many key/value heads as query heads; values may
// have any width.
at::Tensor plain_attention(const SoftmaxHeads& in, const ScoreRule& rule = {});
// The same with all S^2 scores in memory at once, and each step a separate op.
at::Tensor softmax_attention_reference(const SoftmaxHeads& in, const ScoreRule& rule = {});

// [B, groups, S, D] -> [B, heads, S, D]: repeats each group for each of its query heads.
at::Tensor repeat_groups(const at::Tensor& x, int64_t heads);
// Its adjoint: [B, heads, S, D] -> [B, groups, S, D].
at::Tensor sum_groups(const at::Tensor& x, int64_t groups);

// [B, heads, S, D] -> [S, B, heads D]: the layout of the layers around attention. The result is dense; that costs a
// copy where the attention kernel wrote another layout (LibTorch's fp32 kernel on GPUs does), but otherwise the layers
// would copy it twice, forward and backward.
at::Tensor by_position(const at::Tensor& x);

}  // namespace ranklab
