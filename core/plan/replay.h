// A recorded rank's model and optimizer, which run only a few microbatches of each stage (repeated_passes.h) and repeat
// their measured cost for the others. The schedule, its messages and the clocks are those of a whole step, so a step
// with a thousand microbatches costs hardly more than one with three. Passes are not repeated in steps in which
// microbatches differ: with pairwise accumulation, with pairs of interleaved halves, and with attention within
// documents. Thread rule: its rank's thread.
#pragma once
#include <vector>

#include "core/plan/step_record.h"
#include "core/runtime/components.h"

namespace ranklab {

bool microbatches_in_order(const RunPlan& plan);   // each microbatch runs by itself
bool microbatches_are_alike(const RunPlan& plan);  // and each has the same cost

// The given parts, but with such a model and optimizer.
RuntimeComponents with_repeated_passes(RuntimeComponents parts, RepeatedCalls calls = RepeatedCalls::kCounted);

// For a rank's latest step.
struct PassReport {
  TrafficCount repeated = {};  // traffic of repeated passes, which no event shows
  // Bytes kept by one microbatch from F to its backward, for each of the rank's stages; 0 where microbatches do not run
  // in order.
  std::vector<int64_t> kept_bytes = {};
  // The shortest passes of a microbatch in all of these stages together: compute, and the exchanges inside layers,
  // without gradients and messages. 0 where microbatches differ.
  int64_t shortest_ns = 0;
};
// REQUIRES: `model` was made by those parts.
const PassReport& passes_of(const CausalLm& model);

}  // namespace ranklab
