// Measured peak memory of a run's ranks: before the first step, while the training state is created, then, after one
// step that creates what stays, during another step. Each is every rank's highest total with its categories. Cost: two
// training steps. Thread rule: the thread that would call RuntimeEngine::fit().
#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "core/base/vocabulary.h"
#include "core/runtime/components.h"

namespace ranklab {

struct MeasuredMemory {
  using Bytes = std::array<int64_t, static_cast<size_t>(MemoryCategory::kCount)>;
  int global_rank = 0;
  Bytes at_peak{}, highest{}, at_end{};  // during the step, and after it
  int64_t peak_bytes = 0;
  Bytes at_start_peak{}, start_highest{};  // before the first step
};
// By rank. REQUIRES: ranks that are threads, tensors on the CPU. Trains the model of `parts`, whose weights are lost.
std::vector<MeasuredMemory> measure_memory(RuntimeComponents parts, RunPlan plan);

}  // namespace ranklab
