// RMSNorm of all queries of a token together, and of all its keys, before their position is turned in, with a weight
// for each element of either (OLMo 2, arXiv 2501.00656): unlike that of each head (core/nn/head_norm.h)
// its mean goes over heads that lie on other tensor-parallel ranks, so that their sums of squares are added up over tp;
// the weights are cut like the projection. Values are copied. Cost: one all_reduce of 2 S B numbers forward and one
// backward. Memory: keeps the projection and two numbers a token. Legend: S sequence, B batch. Thread rule: its rank's
// thread; all tp ranks in the same order.
#pragma once
#include <ATen/core/Tensor.h>

#include "core/nn/parameter.h"
#include "core/parallel/tensor_parallel.h"
#include "core/spec/layer_specs.h"

namespace ranklab {

struct ProjectionNormNumbers {
  int64_t queries = 0, keys = 0;  // widths, of all ranks' heads together
  double epsilon = 0;
  double offset = 0;  // added to the weights
};

class ProjectionNorm {
 public:
  ProjectionNorm(const ModuleScope& scope, const AttentionSpec& spec, const ModelConfig& config, TensorParallel tp);
  // qkv [S, B, (queries + 2 keys) / tp], this rank's part of each, and so is the result.
  at::Tensor operator()(const at::Tensor& qkv) const;

 private:
  Parameter* q_ = nullptr;
  Parameter* k_ = nullptr;
  ProjectionNormNumbers numbers_;
  TensorParallel tp_;
};

}  // namespace ranklab
