// How much data-parallel ranks share out (ZeRO, Rajbhandari et al. 2020, arXiv 1910.02054), from the three settings
// that can say it: 0 nothing, 1 optimizer states, 2 gradients, too, 3 parameters, too. Torch-free. Thread rule: pure.
#pragma once
#include "core/config/train_config.h"

namespace ranklab {

// Throws kInvalidArgument when the settings contradict each other or ask for what is not there.
int resolve_zero_stage(const TrainConfig& config);

}  // namespace ranklab
