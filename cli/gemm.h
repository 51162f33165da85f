// Chooses the fp32 matrix multiplication for a model by measurement (core/runtime/gemm_choice.h) and says why.
#pragma once
#include <string>

#include "core/comm/world.h"
#include "core/runtime/train_config.h"

namespace ranklab {

// Applies the choice process-wide; call before ranks start. RETURNS: one line for the banner ("" for fp64).
std::string choose_gemm(const RunPlan& plan);
// The same where ranks may be processes: rank 0 measures, all follow it, so that all have the same bits. Collective.
std::string choose_gemm(const RunPlan& plan, World& world);

}  // namespace ranklab
