// Pipeline schedules as trace stores (core/pipeline/schedule_trace.h), whose times are shown in units of cost. Cost:
// O(actions). Thread rule: pure, except for files.
#pragma once
#include <string>

#include "core/pipeline/schedule_trace.h"
#include "viz/model/store/trace_store.h"

namespace ranklab::viz {

// `c`: the message latency with which `line` was computed.
TraceFile schedule_file(const Schedule& schedule, const PipelineTimeline& line, double c = 0);
TraceStore schedule_store(const Schedule& schedule, const PipelineTimeline& line, double c = 0);
// Simulates the schedule with these costs.
TraceStore schedule_store(const Schedule& schedule, const ScheduleCosts& costs);
// Reads a file of core/pipeline/csv.h (ours or torch.distributed.pipelining's). Throws kBadFile if it is not a
// schedule, kInvalidArgument for one that cannot run.
TraceStore schedule_store_from_csv(const std::string& path, const ScheduleCosts& costs = {});

}  // namespace ranklab::viz
