// The softmax part of causal attention on heads, forward and backward, by the fused kernel of the tensors' device:
// ATen's flash attention on a CPU, on a GPU in 16 bits flash attention (Dao 2023, arXiv 2307.08691) or cuDNN's, which
// read each group's keys and values for all of its query heads without a copy a head, in fp32 ATen's memory-efficient
// one. Memory: linear in S. Cost: as attention.h.
// Thread rule: choose before ranks start; the rest on its rank's thread, where autograd does not record.
#pragma once
#include <ATen/core/Tensor.h>

#include <optional>

namespace ranklab {

// On a GPU in 16 bits; a CPU has one, and so has fp32. kAuto: cuDNN's where that is faster (long sequences on Hopper
// and later), else flash, whose backward can be made to repeat bit for bit.
enum class GpuAttention { kAuto, kFlash, kCudnn };
void use_gpu_attention(GpuAttention kernel);  // kAuto at the start
GpuAttention gpu_attention();

// Whether tensors like x with heads of this width have one.
bool has_softmax_attention(const at::Tensor& x, int64_t head_dim);

// [B, heads, S, D] and for keys and values [B, groups, S, D], of any strides with dense rows; or gradients of them.
struct SoftmaxHeads {
  at::Tensor q, k, v;
};
struct SoftmaxedHeads {
  at::Tensor out;          // [B, heads, S, D]; on a GPU with the strides of q
  at::Tensor log_sum_exp;  // a number a query, for backward
};
// What becomes of the products of queries and keys.
struct ScoreRule {
  std::optional<double> scale = std::nullopt;  // unset: 1 / sqrt(D)
  int64_t window =
      0;           // positions a query sees, itself among them (window_attention.h); 0, or S and more: all before it
  double cap = 0;  // scores are bounded by it (capped_attention.h); 0: they are not
};
// REQUIRES: has_softmax_attention, and of shorter windows a CPU; with a cap neither.
SoftmaxedHeads softmax_attention(const SoftmaxHeads& in, const ScoreRule& rule = {});
SoftmaxHeads softmax_attention_grad(const SoftmaxHeads& in, const SoftmaxedHeads& forward, const at::Tensor& grad_out,
                                    const ScoreRule& rule = {});

// [B, groups, S, D] -> [B, heads, S, D]: each group once for each of its query heads.
at::Tensor repeat_groups(const at::Tensor& x, int64_t heads);

// [B, heads, S, D] -> [S, B, heads D]: as the layers around an attention have it.
at::Tensor by_position(const at::Tensor& x);

}  // namespace ranklab
