// What the actions of a pipeline took in a traced run: the costs for a simulation of other schedules of the same
// stages. Torch-free. Thread rule: pure function. Cost: one pass over the events.
#pragma once
#include <vector>

#include "core/pipeline/simulate.h"
#include "core/trace/chrome_reader.h"

namespace ranklab {

// Microseconds of the trace's clock, means over ranks, steps and microbatches.
struct TraceCosts {
  std::vector<StageCost> stages;
  double c = 0;        // of a message between stages, from its start on the link; 0 when there was none
  bool split = true;   // B and W were seen apart; else each is half of BW
  ScheduleCosts mean;  // of a rank, for schedules that are searched by cost
};

// Throws kBadFile when the trace has no pipeline actions, or misses a stage.
TraceCosts costs_of_trace(const TraceFile& file);

}  // namespace ranklab
