// The timeline of a schedule without running it: each rank executes its actions in order, and an action starts when the
// rank is free and its inputs have arrived. Reproduces the published bubble rates of Qi et al. (arXiv 2401.10241, table
// 5). Cost: O(actions). Torch-free. Thread rule: pure functions.
#pragma once
#include <array>
#include <vector>

#include "core/pipeline/schedule.h"

namespace ranklab {

struct StageCost {
  double f = 0;
  double b = 0;
  double w = 0;
  double bw = 0;  // cost of an unsplit backward, where it is less than b + w; 0: b + w

  double whole_backward() const { return bw > 0 ? bw : b + w; }
};

// Splits a rank's `costs` over its stages: a rank that holds v stages of one chain spends f/v in each.
std::vector<StageCost> stage_costs(const Schedule& schedule, const ScheduleCosts& costs);

struct PipelineTiming {
  std::vector<StageCost> stages;
  double c = 0;            // latency of a message between different ranks
  double pair_factor = 1;  // for an overlapped pair
};

// Why a rank was idle.
enum class IdleCause { kWarmUp, kDependency, kMessage, kDrain };
constexpr const char* name(IdleCause cause) {
  constexpr std::array kNames = {"warm-up", "dependency", "message", "drain"};
  return kNames[static_cast<size_t>(cause)];
}

struct Idle {
  IdleCause cause = IdleCause::kDependency;
  double begin = 0;
  double end = 0;
  int waits_for_rank = -1;  // the rank whose action was waited for
  Action waits_for = {};
};

struct TimedAction {
  Action action;
  double begin = 0;
  double end = 0;
  double slack = 0;  // how much later it could end without making the schedule longer
  bool critical = false;
};

struct PipelineTimeline {
  std::vector<std::vector<TimedAction>> ranks;
  std::vector<std::vector<Idle>> idle;  // between time 0 and the end of the last rank
  double end = 0;                       // end time of the last action
  // The largest time between a rank's first start and its last end, which is how publications define it. Equals `end`
  // when the first rank ends last.
  double makespan = 0;
  double ideal = 0;  // compute time of the busiest rank without overlap: m (F+B+W) for equal stages

  double bubble_of_total() const { return 1 - ideal / makespan; }
  double bubble_of_ideal() const { return makespan / ideal - 1; }
};

// REQUIRES: verify_schedule() finds nothing wrong; throws kInvalidArgument naming the stuck ranks otherwise.
PipelineTimeline simulate(const Schedule& schedule, const PipelineTiming& timing);
PipelineTimeline simulate(const Schedule& schedule, const ScheduleCosts& costs);

}  // namespace ranklab
