// A pipeline schedule as a trace, so that timeline, stage, text, SVG and tables show schedules with the same code as
// runs: compute spans named F, B, W, BW, F&BW with stage and microbatch, and a send and a receive for every message
// between ranks, whose waits are the schedule's bubbles. Cost: O(actions). Thread rule: pure.
#pragma once
#include <vector>

#include "core/pipeline/simulate.h"
#include "core/trace/event.h"

namespace ranklab {

// One unit of cost in virtual time.
constexpr int64_t kScheduleUnitNs = 1'000'000;

// `c`: the message latency with which `line` was computed.
std::vector<RankTrace> schedule_trace(const Schedule& schedule, const PipelineTimeline& line, double c = 0);

}  // namespace ranklab
