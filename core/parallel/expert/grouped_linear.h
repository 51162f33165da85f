// One linear layer per expert on tokens sorted by expert, as one grouped GEMM (MegaBlocks: Gale et al. 2022, arXiv
// 2211.15841): at::_grouped_mm in bf16 on GPUs, otherwise one product per expert with tokens, charged as one kernel.
// Works with DeferWeightGrads. Every expert gets a gradient, zero without tokens, so that gradient buckets start in the
// same order on all ranks. Thread rule: its rank's thread.
#pragma once
#include <ATen/core/Tensor.h>

#include <vector>

#include "core/nn/activation.h"
#include "core/parallel/token_context.h"

namespace ranklab {

class LinearQuantizer;

// rows [N, I] sorted by expert, counts and weights [O, I] per expert -> [N, O]. `quantizers`: one per expert, whose
// layer then runs as a separate product (linear_quantizer.h); empty: products are in the type of the rows.
at::Tensor grouped_linear(const at::Tensor& rows_NI, const std::vector<int64_t>& counts,
                          const std::vector<at::Tensor>& weights_OI,
                          const std::vector<LinearQuantizer*>& quantizers = {}, const TokenContext& tokens = {});
// The same for an activation's output, which backward recomputes instead of saving it.
at::Tensor grouped_linear(const Activated& rows_NI, const std::vector<int64_t>& counts,
                          const std::vector<at::Tensor>& weights_OI,
                          const std::vector<LinearQuantizer*>& quantizers = {}, const TokenContext& tokens = {});
// Matrices of one size as one tensor [E, ...]: without a copy where they are equally far apart in memory, as a GPU's
// are (make_adjacent_values()) and those that ZeRO stage 3 gathered. Such a tensor keeps nothing alive.
at::Tensor stacked(const std::vector<at::Tensor>& matrices);
// The same in plain ATen ops, expert by expert.
at::Tensor grouped_linear_reference(const at::Tensor& rows_NI, const std::vector<int64_t>& counts,
                                    const std::vector<at::Tensor>& weights_OI);

}  // namespace ranklab
