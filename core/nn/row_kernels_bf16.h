// The loops of row_kernels.h on bf16 tensors: each row is widened to fp32, goes through the same loops, and is rounded
// once where it is stored (to nearest, ties to even). What a norm keeps per row and the rotary tables stay in fp32, as
// in fused GPU kernels. A residual sum is rounded before it is normalized, since backward has only the rounded one.
// Torch-free. Cost: one read and one write of each operand. Thread rule: pure functions.
#pragma once
#include <bit>
#include <cstdint>

#include "core/nn/row_kernels.h"

namespace ranklab::kernels {

struct Bf16 {
  uint16_t bits = 0;
};

inline float widen(Bf16 x) { return std::bit_cast<float>(static_cast<uint32_t>(x.bits) << 16); }
inline Bf16 narrow(float x) {
  const auto bits = std::bit_cast<uint32_t>(x);
  const uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  return {static_cast<uint16_t>((bits & 0x7fffffff) > 0x7f800000 ? (bits >> 16) | 0x40 : rounded)};  // NaN stays NaN
}

void rms_norm_forward(RmsNormArgs args, const Bf16* x, const Bf16* branch, const Bf16* weight, Bf16* sum, Bf16* out,
                      float* inv_rms);
void rms_norm_again(RowShape shape, const Bf16* sum, const Bf16* weight, const float* inv_rms, Bf16* out);
void rms_norm_backward(RowShape shape, const Bf16* grad_out, const Bf16* grad_sum, const Bf16* sum, const Bf16* weight,
                       const float* inv_rms, Bf16* grad_in, Bf16* grad_weight);
void swiglu_forward(RowShape shape, const Bf16* gate_up, Bf16* out);
void swiglu_backward(RowShape shape, const Bf16* grad_out, const Bf16* gate_up, Bf16* grad_gate_up);
void split_qkv(QkvShape shape, const Bf16* qkv, const float* cos, const float* sin, Bf16* q, Bf16* k, Bf16* v);
void merge_qkv(QkvShape shape, HeadStrides3 strides, const Bf16* q, const Bf16* k, const Bf16* v, const float* cos,
               const float* sin, Bf16* qkv);
double sum_of_squares(const Bf16* x, int64_t count);

}  // namespace ranklab::kernels
