// RMSNorm of each head's query and of each head's key before their position is turned in, with one weight for all heads
// of either kind: it bounds the scores whatever the projections grow to (Henry et al. 2020, arXiv 2010.04245; as Qwen3
// has it, arXiv 2505.09388). One pass over the fused projection, values copied, charged as one kernel. Memory: keeps
// the projection and one number a head and token for backward. The weights are on every tensor-parallel rank while each
// sees its own heads alone, so that their gradients are summed over tp whatever is done with the sequence. Legend: S
// sequence, B batch, D head dimension. Thread rule: its rank's thread.
#pragma once
#include <ATen/core/Tensor.h>

#include "core/nn/attention.h"
#include "core/nn/parameter.h"
#include "core/spec/layer_specs.h"

namespace ranklab {

struct HeadNormWeights {
  at::Tensor q, k;  // [D]
  double epsilon = 0;
  double offset = 0;  // added to the weights
};

// qkv [S, B, (heads + 2 groups) D] as causal_attention() takes it, and so is the result.
at::Tensor head_norm(const at::Tensor& qkv, const AttentionShape& shape, const HeadNormWeights& weights);
// The same in plain ATen ops: what the kernel is tested against, and the path of other devices and dtypes.
at::Tensor head_norm_reference(const at::Tensor& qkv, const AttentionShape& shape, const HeadNormWeights& weights);

class HeadNorm {
 public:
  // `heads_are_cut`: over tp.
  HeadNorm(const ModuleScope& scope, const AttentionSpec& spec, const ModelConfig& config, bool heads_are_cut);
  at::Tensor operator()(const at::Tensor& qkv, const AttentionShape& shape) const;

 private:
  Parameter* q_ = nullptr;
  Parameter* k_ = nullptr;
  double epsilon_, offset_;
};

}  // namespace ranklab
