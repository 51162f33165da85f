// Which activations a run recomputes in backward (core/spec/recompute_policy.h), from its settings.
// Torch-free. Thread rule: pure.
#pragma once
#include <string>

#include "core/config/train_config.h"
#include "core/spec/recompute_policy.h"

namespace ranklab {

// Parses the value of --recompute-modules, such as "core_attn,moe". Throws kInvalidArgument for an empty list or an
// unknown name.
RecomputedModules parse_recomputed_modules(const std::string& text);
std::string names_of(const RecomputedModules& modules);

RecomputePolicy recompute_policy(const TrainConfig& config);

// REQUIRES: the schedule and its stages are known. Throws kInvalidArgument when the settings contradict each other or
// request more layers than a stage has, or modules that the model does not have.
void check_recompute(const RunPlan& plan);

}  // namespace ranklab
