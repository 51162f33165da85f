// One pre-norm transformer layer: attention and MLP, each one column-parallel and one row-parallel linear. The residual
// stream travels as (x, branch), the last branch not yet added, so that the addition and the next norm are one pass.
// Legend: S positions (this rank's with sequence parallelism), B sequences, H hidden. Cost: 2 all_reduce (or all_gather
// + reduce_scatter) of [S, B, H] forward and 2 backward. Thread rule: its rank's thread.
#pragma once
#include <ATen/core/Tensor.h>

#include <string>

#include "core/model/model_config.h"
#include "core/nn/attention.h"
#include "core/nn/dropout.h"
#include "core/nn/norm.h"
#include "core/parallel/linear.h"

namespace ranklab {

struct ResidualStream {
  at::Tensor x_SBH;
  at::Tensor branch_SBH;  // still to be added to x; undefined before the first layer
};

class TransformerBlock {
 public:
  TransformerBlock(ParameterRegistry& registry, const ModelConfig& config, int64_t layer, RopeTable rope,
                   TensorParallel tp);
  // dropout: probability 0 switches it off.
  void forward(ResidualStream& stream, double dropout_probability, const DropoutPlace& place) const;

 private:
  std::string name_;
  AttentionShape attention_;
  ActivationKind activation_;
  RopeTable rope_;
  Norm attention_norm_;
  ColumnParallelLinear qkv_;
  RowParallelLinear out_;
  Norm mlp_norm_;
  ColumnParallelLinear up_;
  RowParallelLinear down_;
};

}  // namespace ranklab
