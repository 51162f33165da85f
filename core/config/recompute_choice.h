// Which activations a run recomputes in backward (core/spec/recompute_policy.h), from its three settings.
// Torch-free. Thread rule: pure.
#pragma once
#include "core/config/train_config.h"
#include "core/spec/recompute_policy.h"

namespace ranklab {

RecomputePolicy recompute_policy(const TrainConfig& config);

// REQUIRES: the schedule and its stages are known. Throws kInvalidArgument when the settings contradict each other or
// request more layers than a stage has.
void check_recompute(const RunPlan& plan);

}  // namespace ranklab
