// Token embedding sharded by rows of the vocabulary (Megatron-LM, arXiv 1909.08053): a rank looks up the tokens it owns
// and has zeros for the others; the sum over tp is exact, since each row has one non-zero contribution. The vocabulary
// is padded to a multiple of tp with zero rows that no token refers to. Cost: one all_reduce (or reduce_scatter with
// sequence parallelism) of [S, B, H]. Thread rule: its rank's thread.
#pragma once
#include <ATen/core/Tensor.h>

#include "core/nn/parameter.h"
#include "core/parallel/tensor_parallel.h"

namespace ranklab {

class VocabParallelEmbedding {
 public:
  // `scale`: a factor that multiplies the looked-up rows, not the weight.
  VocabParallelEmbedding(const ModuleScope& scope, const ModuleSpec& spec, TensorParallel tp, double scale = 1.0);
  // tokens int64 [S, B] -> [S, B, H], or this rank's positions with sequence parallelism.
  at::Tensor operator()(const at::Tensor& tokens_SB, const TokenContext& context) const;
  const Parameter& weight() const { return *weight_; }  // a tied head uses it as [V, H]

 private:
  Parameter* weight_ = nullptr;
  at::Tensor lookup(const at::Tensor& tokens_SB, const TokenContext& context) const;

  TensorParallel tp_;
  double scale_;  // multiplies looked-up rows, rounded to their type
};

}  // namespace ranklab
