// RMSNorm over all query heads of a token together, and over all its key heads, before RoPE, with a weight per element
// (OLMo 2, arXiv 2501.00656). Unlike the per-head norm (core/nn/head_norm.h), the mean spans heads on other
// tensor-parallel ranks, so sums of squares are added over tp; the weights are sharded like the projection. The value
// vectors are copied. Cost: one all_reduce of 2 S B numbers forward and one backward. Memory: saves the projection and
// two numbers per token. Legend: S sequence, B batch. Thread rule: its rank's thread; all tp ranks in the same order.
#pragma once
#include <ATen/core/Tensor.h>

#include "core/nn/parameter.h"
#include "core/parallel/tensor_parallel.h"
#include "core/spec/layer_specs.h"

namespace ranklab {

struct ProjectionNormNumbers {
  int64_t queries = 0, keys = 0;  // widths, counting the heads of all ranks
  double epsilon = 0;
  double offset = 0;  // added to the weights
};

class ProjectionNorm {
 public:
  ProjectionNorm(const ModuleScope& scope, const AttentionSpec& spec, const ModelConfig& config, TensorParallel tp);
  // qkv [S, B, (queries + 2 keys) / tp], this rank's part of each; the result has the same layout.
  at::Tensor operator()(const at::Tensor& qkv) const;

 private:
  Parameter* q_ = nullptr;
  Parameter* k_ = nullptr;
  ProjectionNormNumbers numbers_;
  TensorParallel tp_;
};

}  // namespace ranklab
