// A learner's order of work as a schedule: one stage per rank, verified before it is timed. A forward takes 1 unit of
// time, and so does each half of a backward. Thread rule: pure, except for the learner's function.
#pragma once
#include <string>
#include <vector>

#include "core/pipeline/simulate.h"
#include "core/pipeline/verify.h"
#include "lessons/lesson.h"
#include "lessons/order_api.h"

namespace ranklab::lesson {

inline constexpr ScheduleCosts kUnitCosts = {.f = 1, .b = 1, .w = 1};

struct TimedSchedule {
  Schedule schedule;
  PipelineTimeline timeline;
  std::vector<double> held;  // per rank: peak activations, in microbatches

  double most_held() const;
  std::string held_text() const;  // "8 7 6 5"
};

TimedSchedule timed(Schedule schedule);
// A schedule of core/pipeline/schedules.h, with `chunks` stages per rank.
TimedSchedule timed(const std::string& name, int ranks, int microbatches, int chunks = 1);

using OrderFunction = void(Order& order, int rank, int ranks, int microbatches);
// Throws kCheckFailed, with the names of order_api.h, if something is missing, done twice or used before it is
// computed, if the ranks wait for each other, or if a list does not end.
TimedSchedule run_order(OrderFunction* order, int ranks, int microbatches);
// The lists as they were written, possibly not runnable.
Schedule written_schedule(OrderFunction* order, int ranks, int microbatches);

std::string percent(double share);  // "46.67 %"

}  // namespace ranklab::lesson
