// What data-parallel ranks shard (ZeRO, Rajbhandari et al. 2020, arXiv 1910.02054): derives one row of kZeroStages
// (core/base/zero_stage.h) from the three settings that select it. Torch-free. Thread rule: pure.
#pragma once
#include <string>

#include "core/config/train_config.h"

namespace ranklab {

// Throws kInvalidArgument when the settings contradict each other or request a stage that does not exist.
int resolve_zero_stage(const TrainConfig& config);
// The stages from `first` on: "1, 2 or 3".
std::string zero_stage_numbers(size_t first);
// Whether the gradients of some parameters are sharded over several ranks.
bool shards_gradients(const RunPlan& plan);
// Whether ranks gather updated parameters during the next forward: with --overlap-param-gather, in ZeRO stages 1 and 2.
// A CUDA graph has no messages inside a pass, so with --cuda-graph they are gathered at the end of the step.
bool overlaps_param_gather(const RunPlan& plan);
// Whether ranks that shard gradients nevertheless hold whole gradients during a step, because the step has several
// microbatches.
bool accumulates_whole_gradients(const RunPlan& plan);

}  // namespace ranklab
