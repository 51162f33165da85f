// The softmax part of causal attention on heads, forward and backward, by the fused kernel of the tensors' device:
// ATen's flash attention on a CPU; on a GPU flash attention (Dao 2023, arXiv 2307.08691) or cuDNN's for 16 bits, which
// read grouped keys and values without a copy per query head (flash alone takes windows), and ATen's memory-efficient
// kernel for fp32. What a GPU has none for (windows in fp32, fp64, heads of odd widths) ATen's
// scaled_dot_product_attention computes with a mask, followed by autograd. Memory: linear in S, but for that mask and,
// in fp64, the scores, which are kept for backward. Cost: as attention.h, which charges the same for all of them.
// Thread rule: choose before ranks start; the rest on its rank's thread, where autograd does not record.
#pragma once
#include <ATen/core/Tensor.h>

#include <optional>
#include <string_view>

namespace ranklab {

// The kernel for 16-bit tensors on a GPU; a CPU and fp32 have only one each. kAuto: cuDNN's where that is faster (long
// sequences on Hopper and later), else flash, whose backward can be made to repeat bit for bit. kUnfused, on any
// device: all scores in memory (unfused_attention.h).
enum class GpuAttention { kAuto, kFlash, kCudnn, kUnfused };
GpuAttention gpu_attention_named(std::string_view backend);  // as --attention-backend names them; else kAuto
void use_gpu_attention(GpuAttention kernel);                 // kAuto initially
GpuAttention gpu_attention();

// Whether there is a fused kernel for tensors like x with heads of this width.
bool has_softmax_attention(const at::Tensor& x, int64_t head_dim);

// [B, heads, S, D] and for keys and values [B, groups, S, D], of any strides as long as rows are dense; or their
// gradients.
struct SoftmaxHeads {
  at::Tensor q, k, v;
};
// What autograd followed where there is no fused kernel: backward goes through it instead of running forward again.
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
// How scores are made from the products of queries and keys.
struct ScoreRule {
  std::optional<double> scale = std::nullopt;  // unset: 1 / sqrt(D)
  int64_t window =
      0;           // positions that a query sees, including its own (window_attention.h); 0 or at least S: no window
  double cap = 0;  // scores are bounded by it (tiled_attention.h); 0: they are not
  at::Tensor sinks = {};       // [heads] of the queries (attention_sinks.h); undefined: none
  at::Tensor max_logits = {};  // [heads] of the queries, raised in place (max_logit.h); undefined: nobody wants them

  bool has_window(int64_t seq) const { return window > 0 && window < seq; }
};
// Whoever calls softmax_attention_grad() asks sink_grad() for the sinks' gradient. `for_backward`:
// softmax_attention_grad() will be called with the result, at most once. REQUIRES: has_row_kernels(in.q).
SoftmaxedHeads softmax_attention(const SoftmaxHeads& in, const ScoreRule& rule = {}, bool for_backward = true);
SoftmaxHeads softmax_attention_grad(const SoftmaxHeads& in, const SoftmaxedHeads& forward, const at::Tensor& grad_out,
                                    const ScoreRule& rule = {});

// The output alone in differentiable ops, on any device; as many heads of keys and values as of queries, values of any
// width.
at::Tensor plain_attention(const SoftmaxHeads& in, const ScoreRule& rule = {});
// The same with all S^2 scores at once, each step an op of its own.
at::Tensor softmax_attention_reference(const SoftmaxHeads& in, const ScoreRule& rule = {});

// [B, groups, S, D] -> [B, heads, S, D]: each group once for each of its query heads.
at::Tensor repeat_groups(const at::Tensor& x, int64_t heads);
// Its adjoint: [B, heads, S, D] -> [B, groups, S, D].
at::Tensor sum_groups(const at::Tensor& x, int64_t groups);

// [B, heads, S, D] -> [S, B, heads D]: the layout of the layers around attention. Dense, which costs a copy where the
// attention kernel wrote another one (LibTorch's for fp32 on GPUs): the layers would copy it twice, forward and
// backward.
at::Tensor by_position(const at::Tensor& x);

}  // namespace ranklab
