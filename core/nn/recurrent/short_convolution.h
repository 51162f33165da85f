// The short causal convolution before the recurrence of linear attention or a state space: each channel becomes a
// weighted sum of its last K positions, followed by SiLU (Gu and Dao 2023, arXiv 2312.00752, section 3.4; Yang et al.
// 2024, arXiv 2412.06464, section 3.4). Sums are in fp32 for 16-bit tensors. Cost: one pass. Memory: saves only its
// input. Legend: S positions, B sequences, C channels. Thread rule: its rank's thread.
#pragma once
#include <ATen/core/Tensor.h>

namespace ranklab {

struct ShortKernel {
  at::Tensor weight;     // [C, 1, K]
  at::Tensor bias = {};  // [C]; undefined: none
};

// x [S, B, C] -> silu(bias + sum over j of weight[c, 0, j] x[s - K + 1 + j]) [S, B, C], with zeros before the first
// position. `segment_SB`: int64 [S, B or 1], or undefined; the convolution does not reach across segments.
at::Tensor short_convolution(const at::Tensor& x, const ShortKernel& kernel, const at::Tensor& segment_SB = {});

// The same for positions that continue a sequence: `past` [K - 1, B, C] holds the last inputs, and on return those that
// the next call needs. Forward only.
at::Tensor short_convolution_after(const at::Tensor& x, const ShortKernel& kernel, at::Tensor& past);

}  // namespace ranklab
