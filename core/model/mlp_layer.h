// The feed-forward part of one transformer layer, after its second norm: an MLP sharded over tp, or a mixture of
// experts. Legend: S positions (this rank's with sequence parallelism), B sequences, H hidden. Thread rule: its rank's
// thread.
#pragma once
#include <ATen/core/Tensor.h>

#include <memory>

#include "core/model/forward_context.h"
#include "core/nn/norm.h"
#include "core/parallel/tensor/linear.h"
#include "core/spec/layer_specs.h"

namespace ranklab {

class MlpLayer {
 public:
  virtual ~MlpLayer() = default;
  // [S, B, H] -> [S, B, H].
  virtual at::Tensor forward(const NormOutput& x, const ForwardContext& context) = 0;
};

// An MLP with one hidden layer.
std::unique_ptr<MlpLayer> make_dense_mlp(const ModuleScope& scope, const MlpSpec& spec, ActivationKind activation,
                                         TensorParallel tp);

}  // namespace ranklab
