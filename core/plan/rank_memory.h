// What a rank of a run holds, from its numbers alone: weights, gradients, the optimizer's moments, activations. Of what
// data-parallel ranks share out, the rank that has most.
// Torch-free. Cost: a walk of the schedule. Thread rule: pure.
#pragma once
#include <cstdint>

#include "core/plan/activation_bytes.h"
#include "core/runtime/train_config.h"

namespace ranklab {

struct RankMemory {
  int pp_rank = 0;
  int64_t parameters = 0, gradients = 0, optimizer = 0;  // bytes
  ActivationBytes activations;

  int64_t together() const { return parameters + gradients + optimizer + activations.peak() + activations.gathered; }
};

RankMemory rank_memory(const RunPlan& plan, int pp_rank);
// Of the pipeline rank that holds most.
RankMemory fullest_rank(const RunPlan& plan);

}  // namespace ranklab
