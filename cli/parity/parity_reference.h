// What `ranklab parity` compares a run with. Torch-free. Thread rule: pure.
#pragma once
#include <string>
#include <vector>

#include "core/config/train_config.h"

namespace ranklab {

// The settings of one rank (or of as few as train by the same loss), with the flags behind --against on top. Throws
// kInvalidArgument where `config` is no valid run, or `flags` are no flags.
TrainConfig parity_reference(const TrainConfig& config, const std::vector<std::string>& flags);

}  // namespace ranklab
