// ATen's fused attention on a CPU. Its tiles are not counted as memory, because a GPU's kernels keep theirs on chip.
// Legend: as SoftmaxHeads (softmax_attention.h), with as many key/value heads as query heads. `mask` [queries, keys] is
// added to the scores. Cost: that of the matrix products. Thread rule: pure.
#pragma once
#include <ATen/core/Tensor.h>

#include <optional>

#include "core/nn/attention/softmax_attention.h"

namespace ranklab {

struct FlashScores {
  bool causal = true;
  std::optional<at::Tensor> mask = std::nullopt;
  std::optional<double> scale = std::nullopt;  // unset: 1 / sqrt(D)
};

SoftmaxedHeads cpu_flash_attention(const SoftmaxHeads& in, const FlashScores& scores);
SoftmaxHeads cpu_flash_attention_grad(const SoftmaxHeads& in, const SoftmaxedHeads& forward, const at::Tensor& grad_out,
                                      const FlashScores& scores);

}  // namespace ranklab
