// How much data-parallel ranks share out (ZeRO, Rajbhandari et al. 2020, arXiv 1910.02054), from the three settings
// that can say it: a row of kZeroStages (core/base/zero_stage.h). Torch-free. Thread rule: pure.
#pragma once
#include <string>

#include "core/config/train_config.h"

namespace ranklab {

// Throws kInvalidArgument when the settings contradict each other or ask for what is not there.
int resolve_zero_stage(const TrainConfig& config);
// The stages from that one on: "1, 2 or 3".
std::string zero_stage_numbers(size_t first);

}  // namespace ranklab
