// Token embedding cut by rows of the vocabulary (Megatron-LM, arXiv 1909.08053): a rank looks up the tokens it owns and
// has zeros for the others; summing over tp completes the rows exactly, since each row has one non-zero contribution.
// An uneven vocabulary is padded to a multiple of tp with zero rows that no token names. Cost: one all_reduce (or
// reduce_scatter with sequence parallelism) of [S, B, H]. Thread rule: its rank's thread.
#pragma once
#include <ATen/core/Tensor.h>

#include "core/nn/parameter.h"
#include "core/parallel/tensor_parallel.h"

namespace ranklab {

class VocabParallelEmbedding {
 public:
  VocabParallelEmbedding(const ModuleScope& scope, const ModuleSpec& spec, TensorParallel tp, double scale = 1.0);
  // `scale`: of the rows that are looked up, not of the weight.
  // tokens int64 [S, B] -> [S, B, H], or this rank's positions with sequence parallelism.
  at::Tensor operator()(const at::Tensor& tokens_SB, const TokenPlace& place) const;
  const Parameter& weight() const { return *weight_; }  // a tied head uses it as [V, H]

 private:
  Parameter* weight_ = nullptr;
  at::Tensor lookup(const at::Tensor& tokens_SB, const TokenPlace& place) const;

  TensorParallel tp_;
  double scale_;  // of the rows, rounded to their type
};

}  // namespace ranklab
