// What data-parallel ranks shard (ZeRO, Rajbhandari et al. 2020, arXiv 1910.02054), from the three settings that choose
// it: a row of kZeroStages (core/base/zero_stage.h). Torch-free. Thread rule: pure.
#pragma once
#include <string>

#include "core/config/train_config.h"

namespace ranklab {

// Throws kInvalidArgument when the settings contradict each other or request a stage that does not exist.
int resolve_zero_stage(const TrainConfig& config);
// The stages from `first` on: "1, 2 or 3".
std::string zero_stage_numbers(size_t first);
// Whether several ranks share the gradients of some parameters.
bool shards_gradients(const RunPlan& plan);
// Whether ranks that shard gradients hold whole ones meanwhile, because a step has several microbatches.
bool adds_up_whole_gradients(const RunPlan& plan);

}  // namespace ranklab
