// One linear layer per expert over tokens sorted by expert, as one grouped GEMM (MegaBlocks: Gale et al. 2022, arXiv
// 2211.15841): on GPUs in bf16 at::_grouped_mm, elsewhere a product per expert that has tokens, charged as one kernel.
// Works with DeferWeightGrads. Every expert gets a gradient, zero without tokens, so that gradient buckets start in the
// same order on all ranks. Thread rule: its rank's thread.
#pragma once
#include <ATen/core/Tensor.h>

#include <vector>

#include "core/nn/activation.h"
#include "core/parallel/token_place.h"

namespace ranklab {

class LinearQuantizer;

// rows [N, I] by expert, counts of each expert, weights [O, I] of each -> [N, O]. `quantizers`: of each expert, which
// then is a product of its own (linear_quantizer.h); empty: the products are in the type of the rows.
at::Tensor grouped_linear(const at::Tensor& rows_NI, const std::vector<int64_t>& counts,
                          const std::vector<at::Tensor>& weights_OI,
                          const std::vector<LinearQuantizer*>& quantizers = {}, const TokenPlace& tokens = {});
// Of an activation's output, which is not kept but computed again in backward.
at::Tensor grouped_linear(const Activated& rows_NI, const std::vector<int64_t>& counts,
                          const std::vector<at::Tensor>& weights_OI,
                          const std::vector<LinearQuantizer*>& quantizers = {}, const TokenPlace& tokens = {});
// The same, expert by expert in plain ATen ops.
at::Tensor grouped_linear_reference(const at::Tensor& rows_NI, const std::vector<int64_t>& counts,
                                    const std::vector<at::Tensor>& weights_OI);

}  // namespace ranklab
