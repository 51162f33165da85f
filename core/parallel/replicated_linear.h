// A linear layer whose whole weight is on every tensor-parallel rank: the down-projections of latent attention, too
// narrow to be cut. It sees the positions that its rank has; with sequence parallelism those are its own, so its
// gradient is summed over tp, otherwise all ranks compute the same (their input gradient must then be whole, which a
// column-parallel layer behind it sees to). Cost: one GEMM, nothing is sent. Legend: x [S, B, in] -> [S, B, out].
// Thread rule: its rank's thread.
#pragma once
#include <ATen/core/Tensor.h>

#include "core/nn/norm.h"
#include "core/nn/parameter.h"
#include "core/parallel/linear.h"
#include "core/parallel/tensor_parallel.h"

namespace ranklab {

class ReplicatedLinear {
 public:
  ReplicatedLinear(const ModuleScope& scope, const ModuleSpec& spec, const TensorParallel& tp);
  at::Tensor operator()(const at::Tensor& x, const TokenPlace& tokens) const;
  // On a norm's output, which is not kept for backward but computed again there when the norm has a recipe.
  at::Tensor operator()(const NormOutput& x, const TokenPlace& tokens) const;

 private:
  at::Tensor multiply(const at::Tensor& x, const NormRecipe& recipe, const TokenPlace& tokens) const;

  Parameter* weight_ = nullptr;
  Parameter* bias_ = nullptr;
  LinearQuantizer* quantizer_ = nullptr;
};

}  // namespace ranklab
