// Whether tokens fit a model: their number and their values. Cost: a pass over tokens in the host's memory; those of a
// device are not waited for. Thread rule: pure.
#pragma once
#include <ATen/core/Tensor.h>

#include "core/spec/model_config.h"

namespace ranklab {

// Throws kInvalidArgument.
void check_tokens(const at::Tensor& tokens_BS, const ModelConfig& config);

}  // namespace ranklab
