// A learner's order of work as a schedule: one stage a rank, proven before it is timed. Forward takes 1 and so does
// each half of backward. Thread rule: pure, but for the learner's function.
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
  std::vector<double> held;  // per rank: activations at the worst moment, in microbatches

  double most_held() const;
  std::string held_text() const;  // "8 7 6 5"
};

TimedSchedule timed(Schedule schedule);
// One of core/pipeline/schedules.h, with `chunks` stages a rank.
TimedSchedule timed(const std::string& name, int ranks, int microbatches, int chunks = 1);

using OrderFunction = void(Order& order, int rank, int ranks, int microbatches);
// Throws kCheckFailed, in the words of order_api.h, when something is missing, done twice or used before it is made,
// when the ranks wait for each other, or when a list has no end.
TimedSchedule run_order(OrderFunction* order, int ranks, int microbatches);

std::string percent(double share);  // "46.67 %"

}  // namespace ranklab::lesson
