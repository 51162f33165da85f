// What stands between the second norm and the residual stream of one transformer layer: an MLP cut over tp, or a
// mixture of experts. Legend: S positions (this rank's with sequence parallelism), B sequences, H hidden. Thread rule:
// its rank's thread.
#pragma once
#include <ATen/core/Tensor.h>

#include <memory>
#include <string>

#include "core/model/forward_context.h"
#include "core/nn/norm.h"
#include "core/parallel/linear.h"
#include "core/spec/model_config.h"

namespace ranklab {

class MlpLayer {
 public:
  virtual ~MlpLayer() = default;
  // [S, B, H] -> [S, B, H].
  virtual at::Tensor forward(const NormOutput& x, const ForwardContext& context) = 0;
};

// One hidden layer of `ffn_hidden_size`: SwiGLU or GELU. Parameters are named `name`.*.
std::unique_ptr<MlpLayer> make_dense_mlp(ParameterRegistry& registry, const std::string& name,
                                         const ModelConfig& config, int64_t ffn_hidden_size, TensorParallel tp);

}  // namespace ranklab
