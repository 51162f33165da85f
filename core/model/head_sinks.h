// The attention sinks (core/nn/attention/attention_sinks.h) of a rank's heads: a parameter, zeros, or none, depending
// on the model's softmax. Thread rule: its rank's thread.
#pragma once
#include <ATen/core/Tensor.h>

#include <optional>

#include "core/nn/parameter.h"
#include "core/parallel/tensor_parallel.h"
#include "core/spec/model_config.h"

namespace ranklab {

class HeadSinks {
 public:
  HeadSinks(const ModuleScope& scope, const std::optional<ModuleSpec>& spec, const ModelConfig& config,
            const TensorParallel& tp);
  at::Tensor of_heads() const;  // [heads of this rank]; undefined: none

 private:
  Parameter* learned_ = nullptr;
  at::Tensor zeros_;
};

}  // namespace ranklab
