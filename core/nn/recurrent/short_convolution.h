// The short causal convolution before the recurrence of linear attention or a state space: each channel is a weighted
// sum of its last K positions, through SiLU (Gu and Dao 2023, arXiv 2312.00752, section 3.4; Yang et al. 2024, arXiv
// 2412.06464, section 3.4). Sums are in fp32 for 16 bits. Cost: one pass. Memory: saves its input alone. Legend: S
// positions, B sequences, C channels. Thread rule: its rank's thread.
#pragma once
#include <ATen/core/Tensor.h>

namespace ranklab {

struct ShortKernel {
  at::Tensor weight;     // [C, 1, K]
  at::Tensor bias = {};  // [C]; undefined: none
};

// x [S, B, C] -> silu(bias + sum over j of weight[c, 0, j] x[s - K + 1 + j]) [S, B, C], with zeros before the first
// position. `segment_SB`, int64 [S, B or 1] or undefined: positions of different segments do not see each other.
at::Tensor short_convolution(const at::Tensor& x, const ShortKernel& kernel, const at::Tensor& segment_SB = {});

// The same of positions that follow `past` [K - 1, B, C], the last inputs, which then are those before the next ones.
// Forward only.
at::Tensor short_convolution_after(const at::Tensor& x, const ShortKernel& kernel, at::Tensor& past);

}  // namespace ranklab
