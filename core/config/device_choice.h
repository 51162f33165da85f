// Where a run's tensors are (--device), and what cannot be there. Thread rule: pure.
#pragma once
#include "core/config/train_config.h"

namespace ranklab {

// Throws kInvalidArgument for a device that the backend, or something else that was asked for, rules out.
void check_device(const TrainConfig& config);

}  // namespace ranklab
