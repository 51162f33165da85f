// A recorded rank's model and optimizer, that run a few microbatches of each stage (repeated_passes.h) and repeat for
// the others what those came to: the schedule, its messages and the clocks are those of a whole step, which so costs
// hardly more with a thousand microbatches than with three. Not repeated are steps in which microbatches differ:
// pairwise accumulation, and pairs whose halves run in turns. Thread rule: its rank's thread.
#pragma once
#include <vector>

#include "core/plan/traffic_count.h"
#include "core/runtime/components.h"

namespace ranklab {

// Parts with such a model and optimizer in place of theirs.
RuntimeComponents with_repeated_passes(RuntimeComponents parts);

// What a rank repeated since its step began, which no event tells of.
struct Repeated {
  TrafficCount traffic = {};
  double flops = 0;
};
// REQUIRES: a model of those parts.
const Repeated& repeated(const CausalLm& model);
// Bytes that a microbatch keeps from F to its backward in each of the rank's stages.
const std::vector<int64_t>& kept_by_stages(const CausalLm& model);

}  // namespace ranklab
