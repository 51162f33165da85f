// Chooses the fp32 matrix multiplication of a run (core/runtime/gemm_choice.h) and says why.
#pragma once
#include <string>

#include "core/comm/world.h"
#include "core/config/train_config.h"

namespace ranklab {

// Applies the choice process-wide and stores its name in the plan, for logs and checkpoints; call before ranks start.
// RETURNS: one line for the banner ("" if there is no library to choose: other types, a GPU).
std::string choose_gemm(RunPlan& plan);
// The same if ranks may be processes: all of them follow rank 0, so that results are bit-identical. Collective.
std::string choose_gemm(RunPlan& plan, World& world);

}  // namespace ranklab
