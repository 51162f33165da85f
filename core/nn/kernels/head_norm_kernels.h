// The loops of head_norm.h: RMSNorm of each head's query and key in the rows of a fused projection, in one pass that
// copies the values. A 16-bit row is widened to fp32 and rounded once when it is stored, as in row_kernels_16bit.h.
// Torch-free. Cost: one read and one write of each operand. Thread rule: pure functions.
#pragma once
#include <cstdint>

#include "core/nn/kernels/row_kernels_16bit.h"

namespace ranklab::kernels {

struct HeadNormShape {
  int64_t tokens = 0, heads = 0, groups = 0, head_dim = 0;
  double epsilon = 0;
  double weight_offset = 0;  // added to the weights, in the type of the computation

  // heads per token that are normalized; `groups` further heads (values) are copied
  int64_t normed() const { return heads + groups; }
  int64_t width() const { return (heads + 2 * groups) * head_dim; }
};

// For elements of type T, computed in type Wide. qkv and out [tokens, width()], laid out [q heads | k groups | v
// groups]; q_weight and k_weight [head_dim]; inv_rms [tokens, normed()] is kept for backward. The weights' gradients
// are overwritten, not added to.
#define RANKLAB_HEAD_NORM_KERNELS(T, Wide)                                                                            \
  void head_norm_forward(HeadNormShape shape, const T* qkv, const T* q_weight, const T* k_weight, T* out,             \
                         Wide* inv_rms);                                                                              \
  void head_norm_backward(HeadNormShape shape, const T* grad_out, const T* qkv, const T* q_weight, const T* k_weight, \
                          const Wide* inv_rms, T* grad_qkv, T* grad_q_weight, T* grad_k_weight);
RANKLAB_HEAD_NORM_KERNELS(float, float)
RANKLAB_HEAD_NORM_KERNELS(double, double)
RANKLAB_HEAD_NORM_KERNELS(Bf16, float)
RANKLAB_HEAD_NORM_KERNELS(Fp16, float)
#undef RANKLAB_HEAD_NORM_KERNELS

}  // namespace ranklab::kernels
