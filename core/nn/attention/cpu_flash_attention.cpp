#include "core/nn/attention/cpu_flash_attention.h"

#include "core/sim/aten.h"
#include "core/sim/memory_scope.h"

namespace ranklab {

SoftmaxedHeads cpu_flash_attention(const SoftmaxHeads& in, const FlashScores& scores) {
  const ScratchScope tiles;
  auto [out, log_sum_exp] =
      at::_scaled_dot_product_flash_attention_for_cpu(in.q, in.k, in.v, 0.0, scores.causal, scores.mask, scores.scale);
  return {out, log_sum_exp};
}

SoftmaxHeads cpu_flash_attention_grad(const SoftmaxHeads& in, const SoftmaxedHeads& forward, const at::Tensor& grad_out,
                                      const FlashScores& scores) {
  const ScratchScope tiles;
  auto [dq, dk, dv] = at::_scaled_dot_product_flash_attention_for_cpu_backward(
      grad_out, in.q, in.k, in.v, forward.out, forward.log_sum_exp, 0.0, scores.causal, scores.mask, scores.scale);
  return {dq, dk, dv};
}

}  // namespace ranklab
