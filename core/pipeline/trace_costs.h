// What the actions of a pipeline took in a traced run: the costs for a simulation of other schedules of the same
// stages. Torch-free. Thread rule: pure function. Cost: one pass over the events.
#pragma once
#include "core/pipeline/pipeline_costs.h"
#include "core/trace/chrome_reader.h"

namespace ranklab {

// Microseconds of the trace's clock, means over ranks, steps and microbatches. A message counts from its start on the
// link. Throws kBadFile when the trace has no pipeline actions, or misses a stage.
PipelineCosts costs_of_trace(const TraceFile& file);

}  // namespace ranklab
