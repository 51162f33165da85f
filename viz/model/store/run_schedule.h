// The pipeline of a traced run, as input for schedules of the same size: the number of ranks, microbatches, stages per
// rank and microbatches a group, and what its actions cost. Cost: O(events). Thread rule: pure.
#pragma once
#include <optional>

#include "core/pipeline/schedule.h"
#include "viz/model/store/trace_store.h"

namespace ranklab::viz {

struct RunSchedule {
  ScheduleRequest request;
  ScheduleCosts costs;     // of a microbatch on a rank, in units of its forward time
  int64_t forward_ns = 0;  // the length of that unit
};
// RETURNS: nothing if there are no actions of microbatches; one rank if there is no pipeline. An action that runs a
// forward and a backward at once counts half for each.
std::optional<RunSchedule> run_schedule(const TraceStore& store);

}  // namespace ranklab::viz
