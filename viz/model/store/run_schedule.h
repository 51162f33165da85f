// The pipeline of a traced run, for schedules of the same size: how many ranks, microbatches and stages a rank, and
// what its actions cost. Cost: O(events). Thread rule: pure.
#pragma once
#include <optional>

#include "core/pipeline/schedule.h"
#include "viz/model/store/trace_store.h"

namespace ranklab::viz {

struct RunSchedule {
  ScheduleRequest request;
  ScheduleCosts costs;     // of a microbatch on a rank, in units of its forward
  int64_t forward_ns = 0;  // that unit
};
// Nothing without actions of microbatches; one rank without a pipeline. Actions that run a forward and a backward at
// once count half for each.
std::optional<RunSchedule> run_schedule(const TraceStore& store);

}  // namespace ranklab::viz
