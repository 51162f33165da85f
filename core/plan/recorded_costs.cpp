#include "core/plan/recorded_costs.h"

#include <algorithm>
#include <utility>

#include "core/pipeline/trace_costs.h"
#include "core/runtime/components.h"
#include "core/runtime/shapes/built_rank.h"

namespace ranklab {
namespace {

// The first and the last microbatch's gradients have a different cost, so the passes between them are measured: of one
// microbatch with a whole backward, and of one with a split backward.
constexpr int kWhole = 1, kSplit = 2, kMicrobatches = 4;

TraceFile measured_part(std::vector<RankTrace> traces) {
  for (RankTrace& rank : traces) {
    std::erase_if(rank.events, [](const Event& event) {
      return event.kind == EventKind::kCompute && event.microbatch != kWhole && event.microbatch != kSplit;
    });
    // Events of a single stage have no stage number.
    for (Event& event : rank.events) event.stage = std::max(event.stage, 0);
  }
  return {.ranks = std::move(traces), .clock = TraceClock::kVirtual};
}

}  // namespace

PipelineCosts recorded_costs(const RunPlan& plan, const ShapeWorldMaker& make_world) {
  RunPlan probe = plan;
  probe.schedule = one_by_one(plan.schedule, kMicrobatches, kSplit);
  probe.num_microbatches = kMicrobatches;
  probe.config.global_batch_size = plan.micro_batch_size * kMicrobatches * plan.dp();
  const PipelineCosts parts = costs_of_trace(measured_part(record_step(probe, make_world).traces));
  PipelineCosts costs{.stages = {}, .c = parts.c, .split = true, .mean = {}};
  for (int stage = 0; stage < plan.schedule.num_stages(); ++stage)
    costs.stages.push_back(parts.stages[static_cast<size_t>(plan.schedule.part(stage))]);
  costs.mean = mean_of_rank(costs, plan.schedule.num_ranks() * plan.schedule.num_chains());
  return costs;
}

int64_t boundary_bytes(const RunPlan& plan, const ShapeWorldMaker& make_world) {
  int64_t bytes = plan.config.element_bytes();
  build_rank(plan, 0, make_world, [&](StepContext& c) {
    for (const int64_t size :
         c.model.boundary_shape(0, plan.micro_batch_size, plan.config.model.seq_length, StageResult::kLoss))
      bytes *= size;
  });
  return bytes;
}

}  // namespace ranklab
