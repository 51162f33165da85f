// Checks that the number and values of tokens fit a model. Cost: a pass over the tokens. The values of tokens on a
// device are not checked, because that would need a synchronization. Thread rule: pure.
#pragma once
#include <ATen/core/Tensor.h>

#include "core/spec/model_config.h"

namespace ranklab {

// Throws kInvalidArgument if they do not fit.
void check_tokens(const at::Tensor& tokens_BS, const ModelConfig& config);

}  // namespace ranklab
