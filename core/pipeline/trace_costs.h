// How long the actions of a pipeline took in a traced run, as costs for simulating other schedules of the same stages.
// Torch-free. Thread rule: pure function. Cost: one pass over the events.
#pragma once
#include "core/pipeline/pipeline_costs.h"
#include "core/trace/chrome_reader.h"

namespace ranklab {

// In microseconds of the trace's clock, averaged over ranks, steps and microbatches. A message's time begins when it
// starts on the link. The two copies of DualPipe's stages count as one. Throws kBadFile when the trace has no pipeline
// actions, or when a stage is missing.
PipelineCosts costs_of_trace(const TraceFile& file);

}  // namespace ranklab
