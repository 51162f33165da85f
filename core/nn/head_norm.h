// QK-norm: RMSNorm of each head's query and key before RoPE, with one weight for all query heads and one for all key
// heads. It bounds the scores however large the projections grow (Henry et al. 2020, arXiv 2010.04245; as in Qwen3,
// arXiv 2505.09388). It is one pass over the fused projection, which also copies the values, and is charged as one
// kernel. Memory: saves the projection and one number per head and token for backward. The weights are replicated over
// tp while each rank sees only its own heads, so their gradients are summed over tp with and without sequence
// parallelism. Without weights (the L2 norm of Llama 4) it may also be applied before RoPE, since a rotation does not
// change lengths. Legend: S sequence, B batch, D head dimension. Thread rule: its rank's thread.
#pragma once
#include <ATen/core/Tensor.h>

#include "core/nn/attention/attention.h"
#include "core/nn/parameter.h"
#include "core/spec/layer_specs.h"

namespace ranklab {

struct HeadNormWeights {
  at::Tensor q, k;  // [D]
  double epsilon = 0;
  double offset = 0;  // added to the weights
};

// qkv [S, B, (heads + 2 groups) D] in the layout of causal_attention(); the result has the same.
at::Tensor head_norm(const at::Tensor& qkv, const AttentionShape& shape, const HeadNormWeights& weights);
// The same in plain ATen ops. The kernel is tested against it, and it serves other devices and dtypes.
at::Tensor head_norm_reference(const at::Tensor& qkv, const AttentionShape& shape, const HeadNormWeights& weights);

class HeadNorm {
 public:
  // `heads_are_cut`: the heads are sharded over tp.
  HeadNorm(const ModuleScope& scope, const AttentionSpec& spec, const ModelConfig& config, bool heads_are_cut);
  // Without weights.
  HeadNorm(const ModelConfig& config, const at::TensorOptions& options);
  at::Tensor operator()(const at::Tensor& qkv, const AttentionShape& shape) const;

 private:
  HeadNormWeights weights() const;

  Parameter* q_ = nullptr;
  Parameter* k_ = nullptr;
  at::Tensor ones_;  // used in place of weights where there are none
  double epsilon_, offset_;
};

}  // namespace ranklab
