// What the ranks of a run hold at their fullest moment, measured: one training step to make what stays, and another one
// in which every rank's highest total is noted with its categories. Cost: two training steps. Thread rule: the thread
// that would call RuntimeEngine::fit().
#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "core/base/vocabulary.h"
#include "core/runtime/components.h"

namespace ranklab {

struct MeasuredMemory {
  int global_rank = 0;
  std::array<int64_t, static_cast<size_t>(MemoryCategory::kCount)> at_peak{}, highest{}, at_end{};  // after the step
  int64_t peak_bytes = 0;
};
// By rank. REQUIRES: ranks that are threads, tensors on the CPU. Trains `parts`' model, whose weights are lost.
std::vector<MeasuredMemory> measure_memory(RuntimeComponents parts, RunPlan plan);

}  // namespace ranklab
