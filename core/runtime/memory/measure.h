// The measured peak memory of a run's ranks: before the first step, while the training state is created; and during one
// step, after an earlier step has created everything that stays. Each is the highest total of every rank, by category.
// Cost: two training steps. Thread rule: the thread that would call RuntimeEngine::fit().
#pragma once
#include <cstdint>
#include <vector>

#include "core/runtime/components.h"
#include "core/sim/category_bytes.h"

namespace ranklab {

struct MeasuredMemory {
  int global_rank = 0;
  CategoryBytes at_peak{}, highest{}, at_end{};  // during the step, and after it
  int64_t peak_bytes = 0;
  CategoryBytes at_start_peak{}, start_highest{};  // before the first step
};
// Indexed by rank. REQUIRES: ranks are threads and tensors are on the CPU. Trains the model of `parts`, whose weights
// are lost.
std::vector<MeasuredMemory> measure_memory(RuntimeComponents parts, RunPlan plan);

}  // namespace ranklab
