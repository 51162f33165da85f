// The fullest moment of a training step on a rank, and what is there then: weights, optimizer states, and what comes
// and goes while the rank walks its schedule. Activations fall while backward passes the layers, gradients appear
// meanwhile (ZeRO 2 and 3: two buckets at a time and the shards), whole parameters of stage 3 stay for a unit and the
// next one. Within kPeakTolerance of what MemoryBook measures (tests/plan); of what data-parallel ranks share out the
// rank that has most. Torch-free. Cost: a visit of each layer per action. Thread rule: pure.
#pragma once
#include <array>
#include <cstdint>

#include "core/base/vocabulary.h"
#include "core/runtime/train_config.h"

namespace ranklab {

constexpr double kPeakTolerance = 0.05;

using CategoryBytes = std::array<int64_t, static_cast<size_t>(MemoryCategory::kCount)>;
int64_t together(const CategoryBytes& bytes);

struct PeakMemory {
  int pp_rank = 0;
  CategoryBytes at_peak{};  // when the sum is highest
  CategoryBytes highest{};  // of each category by itself
};
PeakMemory peak_memory(const RunPlan& plan, int pp_rank);
// Of the pipeline rank that holds most.
PeakMemory fullest_peak(const RunPlan& plan);

}  // namespace ranklab
