// The loops of row_kernels.h for 16-bit tensors, bf16 and fp16: each row is widened to fp32, processed by the same
// loops, and rounded once when it is stored (to nearest, ties to even). Norms' row statistics and rotary tables stay in
// fp32, as in fused GPU kernels. A residual sum is rounded before it is normalized, since backward has only the rounded
// sum. Torch-free. Cost: one read and one write of each operand. Thread rule: pure functions.
#pragma once
#include <bit>
#include <cstdint>

#include "core/nn/kernels/row_kernels.h"

namespace ranklab::kernels {

struct Bf16 {
  uint16_t bits = 0;
};
struct Fp16 {
  uint16_t bits = 0;
};

inline float widen(Bf16 x) { return std::bit_cast<float>(static_cast<uint32_t>(x.bits) << 16); }
inline void narrow(float x, Bf16& to) {
  const auto bits = std::bit_cast<uint32_t>(x);
  const uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  to.bits = static_cast<uint16_t>((bits & 0x7fffffff) > 0x7f800000 ? (bits >> 16) | 0x40 : rounded);  // NaN stays NaN
}

// fp16 has 5 exponent bits: a normal number is an fp32 number with another bias, and a subnormal number is an fp32
// number without its leading 1. Branch-free, so that loops are vectorized.
inline float widen(Fp16 x) {
  constexpr uint32_t kRebias = (127 - 15) << 23, kSmallest = (127 - 14) << 23;  // the exponent of 2^-14
  const uint32_t magnitude = static_cast<uint32_t>(x.bits & 0x7fff) << 13, exponent = x.bits & 0x7c00;
  const float subnormal = std::bit_cast<float>(magnitude + kSmallest) - std::bit_cast<float>(kSmallest);
  const uint32_t normal = magnitude + (exponent == 0x7c00 ? 2 * kRebias : kRebias);
  const uint32_t wide = exponent == 0 ? std::bit_cast<uint32_t>(subnormal) : normal;
  return std::bit_cast<float>(wide | (static_cast<uint32_t>(x.bits & 0x8000) << 16));
}
inline void narrow(float x, Fp16& to) {
  constexpr uint32_t kRebias = (127 - 15) << 23, kSmallest = (127 - 14) << 23, kTooLarge = (127 + 16) << 23;
  constexpr uint32_t kHalf = 126 << 23;  // added to a subnormal number, it leaves the last bit at 2^-24
  const uint32_t bits = std::bit_cast<uint32_t>(x), magnitude = bits & 0x7fffffff;
  const uint32_t subnormal =
      std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + std::bit_cast<float>(kHalf)) - kHalf;
  const uint32_t normal = (magnitude - kRebias + 0xfff + ((magnitude >> 13) & 1)) >> 13;
  const uint32_t special = magnitude > 0x7f800000 ? 0x7e00 : 0x7c00;
  const uint32_t rounded = magnitude >= kTooLarge ? special : magnitude < kSmallest ? subnormal : normal;
  to.bits = static_cast<uint16_t>(rounded | ((bits >> 16) & 0x8000));
}

// The number nearest to x.
template <typename T>
T narrow(float x) {
  T result;
  narrow(x, result);
  return result;
}

// For T = Bf16 and T = Fp16.
#define RANKLAB_16BIT_KERNELS(T)                                                                                \
  void rms_norm_forward(RmsNormArgs args, const T* x, const T* branch, const T* weight, T* sum, T* out,         \
                        float* inv_rms);                                                                        \
  void rms_norm_recompute(RmsNormArgs args, const T* sum, const T* weight, const float* inv_rms, T* out);       \
  void rms_norm_backward(RmsNormArgs args, const T* grad_out, const T* grad_sum, const T* sum, const T* weight, \
                         const float* inv_rms, T* grad_in, T* grad_weight);                                     \
  void swiglu_forward(RowShape shape, const T* gate_up, T* out);                                                \
  void swiglu_backward(RowShape shape, const T* grad_out, const T* gate_up, T* grad_gate_up, T* out = nullptr); \
  void split_qkv(QkvShape shape, const T* qkv, const float* cos, const float* sin, T* q, T* k, T* v);           \
  void merge_qkv(QkvShape shape, HeadStrides3 strides, const T* q, const T* k, const T* v, const float* cos,    \
                 const float* sin, T* qkv);                                                                     \
  double sum_of_squares(const T* x, int64_t count);                                                             \
  void add_widened(const T* x, float* sum, int64_t count);
RANKLAB_16BIT_KERNELS(Bf16)
RANKLAB_16BIT_KERNELS(Fp16)
#undef RANKLAB_16BIT_KERNELS

}  // namespace ranklab::kernels
