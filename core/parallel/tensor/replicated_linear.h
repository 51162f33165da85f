// A linear layer whose weight is replicated on every tensor-parallel rank: the down-projections of latent attention,
// which are too narrow to shard. With sequence parallelism each rank computes only its own positions, so the weight
// gradient is summed over tp; otherwise all ranks compute the same gradient (which requires that the gradient of the
// output is complete; the column-parallel layer that follows ensures this). Cost: one GEMM, no communication. Legend: x
// [S, B, in] -> [S, B, out]. Thread rule: its rank's thread.
#pragma once
#include <ATen/core/Tensor.h>

#include "core/nn/norm.h"
#include "core/nn/parameter.h"
#include "core/parallel/tensor/linear.h"
#include "core/parallel/tensor_parallel.h"

namespace ranklab {

class ReplicatedLinear {
 public:
  ReplicatedLinear(const ModuleScope& scope, const ModuleSpec& spec, const TensorParallel& tp);
  at::Tensor operator()(const at::Tensor& x, const TokenContext& tokens) const;
  // For a norm's output, which backward recomputes instead of saving it if the norm has a recipe.
  at::Tensor operator()(const NormOutput& x, const TokenContext& tokens) const;

 private:
  at::Tensor multiply(const at::Tensor& x, const NormRecipe& recipe, const TokenContext& tokens) const;

  Parameter* weight_ = nullptr;
  Parameter* bias_ = nullptr;
  LinearQuantizer* quantizer_ = nullptr;
};

}  // namespace ranklab
