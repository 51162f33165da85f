// A pipeline schedule as a trace, so that timeline, text, SVG and tables show schedules with the same code as runs:
// compute spans named F, B, W, BW, F&BW with stage and microbatch, and a send and a receive for every message between
// ranks, whose waits are the schedule's bubbles. One unit of cost is kUnitNs of virtual time. Cost: O(actions). Thread
// rule: pure, except for files.
#pragma once
#include <string>

#include "core/pipeline/simulate.h"
#include "viz/model/trace_store.h"

namespace ranklab::viz {

constexpr int64_t kUnitNs = 1'000'000;

// `c`: the message latency with which `line` was computed.
TraceFile schedule_trace(const Schedule& schedule, const PipelineTimeline& line, double c = 0);
// With unit_ns set.
TraceStore schedule_store(const Schedule& schedule, const PipelineTimeline& line, double c = 0);
// Simulates with these costs.
TraceStore schedule_store(const Schedule& schedule, const ScheduleCosts& costs);
// Reads a file of core/pipeline/csv.h (ours or torch.distributed.pipelining's). Throws kBadFile if it is not a
// schedule, kInvalidArgument for one that cannot run.
TraceStore schedule_store_from_csv(const std::string& path, const ScheduleCosts& costs = {});

}  // namespace ranklab::viz
