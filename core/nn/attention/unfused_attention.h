// Attention as frameworks computed it before flash attention (Megatron-LM's --attention-backend unfused): all S^2
// scores in memory; a matrix product, a fused kernel for scale, mask and softmax, and another matrix product. Backward
// saves the probabilities, 2 a s^2 b bytes in 16 bits (Korthikanti et al. 2022, arXiv 2205.05198, section 4.1), or
// recomputes them. For comparison, and for planning runs that used it. Legend: B batch, S positions, D head dimension.
// Thread rule: its rank's thread.
#pragma once
#include <ATen/core/Tensor.h>

#include "core/nn/attention/softmax_attention.h"

namespace ranklab {

// in.q [B, heads, S, D], in.k and in.v [B, groups, S, D] -> [S, B, heads D]. Differentiable. `rule` gives windows, caps
// and sinks. `recompute`: backward recomputes the probabilities instead of saving them.
at::Tensor unfused_attention(const SoftmaxHeads& in, const ScoreRule& rule, bool recompute);

}  // namespace ranklab
