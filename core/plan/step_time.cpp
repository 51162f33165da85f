#include "core/plan/step_time.h"

#include <algorithm>
#include <limits>

#include "core/pipeline/simulate.h"
#include "core/plan/pipeline_costs.h"
#include "core/plan/step_clock.h"

namespace ranklab {
namespace {

// A rank whose actions begin when the simulated schedule says.
class PipelineClock final : public StepClock {
 public:
  PipelineClock(const StepClock& clock, const std::vector<TimedAction>& actions)
      : StepClock(clock), actions_(actions) {}

  void begin_action(size_t index) override { advance_to(actions_[index].begin * 1e3); }
  int post(Axis axis, Verb verb, int64_t bytes) override {
    if (axis == Axis::kPp && verb == Verb::kAllReduce && norm_at_ == 0) norm_at_ = now();
    return StepClock::post(axis, verb, bytes);
  }
  double norm_at() const { return norm_at_; }

 private:
  const std::vector<TimedAction>& actions_;
  double norm_at_ = 0;  // where the ranks of the pipeline meet
};

StepTime mean(const std::vector<StepTime>& ranks) {
  StepTime out;
  const double share = 1.0 / static_cast<double>(ranks.size());
  for (const StepTime& rank : ranks) {
    out.compute_ns += share * rank.compute_ns;
    out.flops += share * rank.flops;
    for (const auto& [axis, exposed] : rank.exposed_ns) out.exposed_ns[axis] += share * exposed;
    for (const auto& [axis, busy] : rank.busy_ns) out.busy_ns[axis] += share * busy;
  }
  return out;
}

}  // namespace

double StepTime::exposed_total_ns() const {
  double sum = 0;
  for (const auto& [axis, exposed] : exposed_ns) sum += exposed;
  return sum;
}

StepTime estimate_step_time(const StepShape& asked, const Schedule& schedule, const DeviceMesh& mesh,
                            const HardwareProfile& profile, int gpus_per_node) {
  const int node = gpus_per_node > 0 ? gpus_per_node : profile.gpus_per_node;
  StepShape shape = asked;
  place_experts(shape, mesh, node);
  StepClock clock(shape, mesh, profile, node);
  if (schedule.num_ranks() == 1) {
    walk_step(shape, schedule, 0, clock);
    return clock.take();
  }
  const PipelineCosts costs = pipeline_costs(shape, schedule, mesh, profile, gpus_per_node);
  const PipelineTimeline line = simulate(schedule, {costs.stages, costs.c, 1});
  std::vector<StepTime> ranks;
  double meet = 0, rest = 0;
  for (int rank = 0; rank < schedule.num_ranks(); ++rank) {
    PipelineClock own(clock, line.ranks[static_cast<size_t>(rank)]);
    walk_step(shape, schedule, rank, own);
    meet = std::max(meet, own.norm_at());
    rest = std::max(rest, own.now() - own.norm_at());
    ranks.push_back(own.take());
  }
  StepTime time = mean(ranks);
  time.total_ns = meet + rest;
  time.pipeline_idle_ns = std::max(0.0, time.total_ns - time.compute_ns - time.exposed_total_ns());
  return time;
}

}  // namespace ranklab
