// The run with which `ranklab parity` compares. Torch-free. Thread rule: pure.
#pragma once
#include <string>
#include <vector>

#include "core/config/train_config.h"

namespace ranklab {

// The settings for one rank (or for the fewest ranks that train with the same loss), overridden by the flags after
// --against. Throws kInvalidArgument if `config` is not a valid run, or `flags` are not flags.
TrainConfig parity_reference(const TrainConfig& config, const std::vector<std::string>& flags);

}  // namespace ranklab
