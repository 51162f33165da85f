// The five calls of a training program that writes its loop itself, on each rank's thread: init_distributed,
// create_model, create_optimizer, forward_backward, optimizer_step. They are the parts that RuntimeEngine calls,
// without its hooks, checkpoints, metrics and traces. Thread rule: the rank's thread; every rank makes the same calls.
#pragma once
#include <memory>

#include "core/comm/rank_context.h"
#include "core/config/pipeline_layout.h"
#include "core/runtime/components.h"
#include "core/runtime/step_metrics.h"

namespace ranklab::examples {

// A rank's place in the mesh, and its communicators.
struct Distributed {
  Distributed(Endpoint& endpoint, const RunPlan& its_plan)
      : plan(its_plan),
        ctx(endpoint, plan.mesh, {.virtual_time = false, .trace = false}),
        world(endpoint.communicator(plan.mesh.group(Axis::kWorld, endpoint.global_rank()))),
        metrics(*world, ctx, plan, /*wall_peak_flops=*/0) {}

  const RunPlan& plan;
  RankContext ctx;
  CommunicatorPtr world;
  MetricReducer metrics;
};

inline std::unique_ptr<Distributed> init_distributed(Endpoint& endpoint, const RunPlan& plan) {
  return std::make_unique<Distributed>(endpoint, plan);
}

// This rank's stages of the model, sharded as the plan says.
inline std::unique_ptr<CausalLm> create_model(Distributed& on) {
  std::unique_ptr<CausalLm> model = default_parts().model_provider->build_model(on.ctx, on.plan);
  for (Parameter* parameter : model->registry().parameters()) {
    std::vector<int> holders = pipeline_holders(on.plan, parameter->unit);
    if (holders.size() > 1) parameter->pipeline_ranks = std::move(holders);
  }
  return model;
}

// Creates the optimizer with the plan's ZeRO stage, and sets the initial weights.
inline std::unique_ptr<RankOptimizer> create_optimizer(CausalLm& model, Distributed& on) {
  return default_parts().optimizer_runtime->initialize(model, on.ctx, on.plan);
}

// Runs forward and backward of the step's microbatches in the plan's schedule; afterwards the optimizer has this rank's
// gradients. RETURNS: the mean loss of the global batch, equal on all ranks.
inline double forward_backward(CausalLm& model, RankOptimizer& optimizer, RankData& data, Distributed& on,
                               int64_t step) {
  const std::unique_ptr<ScheduleStrategy> schedule = default_parts().schedule_selector->select(on.plan);
  StepContext context{on.ctx, on.plan, model, data, optimizer, step, 0, nullptr, schedule.get()};
  return on.metrics.mean_loss(schedule->run_step(context));
}

// Reduces the gradients, clips them, and updates the weights. RETURNS: their norm before clipping.
inline double optimizer_step(CausalLm& model, RankOptimizer& optimizer, double lr) {
  const double norm = optimizer.finish_step(lr);
  model.end_step();
  return norm;
}

}  // namespace ranklab::examples
