// A recorded rank's model and optimizer that run a few microbatches of each stage (repeated_passes.h) and repeat their
// measured cost for the others: the schedule, its messages and the clocks are those of a whole step, which thus costs
// hardly more with a thousand microbatches than with three. Steps in which microbatches differ are not repeated:
// pairwise accumulation, pairs with interleaved halves, and attention within documents. Thread rule: its rank's thread.
#pragma once
#include <vector>

#include "core/plan/step_record.h"
#include "core/runtime/components.h"

namespace ranklab {

bool microbatches_in_order(const RunPlan& plan);   // each runs by itself
bool microbatches_are_alike(const RunPlan& plan);  // and costs what the others do

// The parts, with such a model and optimizer instead of theirs.
RuntimeComponents with_repeated_passes(RuntimeComponents parts, RepeatedCalls calls = RepeatedCalls::kCounted);

// Of a rank's latest step.
struct PassReport {
  TrafficCount repeated = {};  // what it repeated, and no event shows
  // By a microbatch from F to its backward, in each of the rank's stages; 0 where they do not run in order.
  std::vector<int64_t> kept_bytes = {};
  // The shortest passes of a microbatch in all of these stages: compute and what layers exchange, without gradients and
  // messages. 0 where microbatches differ.
  int64_t shortest_ns = 0;
};
// REQUIRES: a model made by those parts.
const PassReport& passes_of(const CausalLm& model);

}  // namespace ranklab
