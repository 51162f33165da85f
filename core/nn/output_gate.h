// Gates on the output of attention. After softmax attention, the output is multiplied by the sigmoid of a projection of
// attention's input (Qiu et al. 2025, arXiv 2505.06708; Qwen3-Next). After linear attention, an RMSNorm of each head is
// multiplied by the SiLU of the gate (Sun et al. 2023, arXiv 2307.08621, section 2.2; Yang et al. 2024, arXiv
// 2412.06464). After a state space, the gated output is normalized by an RMSNorm of each group of heads (Dao and Gu
// 2024, arXiv 2405.21060, section 7.1). Computed in fp32 for 16-bit tensors. Cost: one pass. Memory: saves only inputs;
// a linear layer that reads the output recomputes it. Thread rule: its rank's thread.
#pragma once
#include <ATen/core/Tensor.h>

#include "core/nn/recomputable_output.h"

namespace ranklab {

// x, gate [..., W] -> x sigmoid(gate)
RecomputableOutput sigmoid_gated(const at::Tensor& x, const at::Tensor& gate);

// x, gate [..., heads D], weight [D] -> x / rms(x of its head) * weight * silu(gate)
RecomputableOutput gated_head_norm(const at::Tensor& x, const at::Tensor& gate, const at::Tensor& weight,
                                   double epsilon);

// x, gate [..., W], weight [W] -> y / rms(y of its group) * weight, where y = x silu(gate); the `groups` groups have
// equal widths.
RecomputableOutput gated_group_norm(const at::Tensor& x, const at::Tensor& gate, const at::Tensor& weight,
                                    int64_t groups, double epsilon);

}  // namespace ranklab
