#include "core/plan/step_time.h"

#include <algorithm>

namespace ranklab {

double StepTime::exposed_total_ns() const {
  double sum = 0;
  for (const auto& [axis, exposed] : exposed_ns) sum += exposed;
  return sum;
}

StepTime time_of(const StepRecord& record) {
  StepTime time;
  time.total_ns = static_cast<double>(record.step_ns);
  time.added = record.added;
  const auto ranks = static_cast<double>(record.ranks.size());
  for (const RankRecord& rank : record.ranks) {
    time.compute_ns += static_cast<double>(rank.time.compute_ns) / ranks;
    time.flops += rank.time.flops / ranks;
    for (size_t kind = 0; kind < time.kernel_ns.size(); ++kind)
      time.kernel_ns[kind] += static_cast<double>(rank.time.kernel_times.ns[kind]) / ranks;
    time.launch_ns += static_cast<double>(rank.time.kernel_times.launch_ns) / ranks;
    time.launches += static_cast<double>(rank.time.kernel_times.launches) / ranks;
    for (const auto& [axis, busy] : rank.traffic.busy_ns) {
      time.busy_ns[axis] += static_cast<double>(busy) / ranks;
      time.exposed_ns[axis] += static_cast<double>(rank.time.exposed_ns[static_cast<size_t>(axis)]) / ranks;
    }
  }
  if (record.ranks.size() > 1)
    time.pipeline_idle_ns =
        std::max(0.0, time.total_ns - time.compute_ns - time.exposed_total_ns() - time.added.hidden_ns -
                          time.added.pieces_ns - time.added.slowest_ns - time.added.outer_ns);
  return time;
}

double step_time_tolerance(const RunPlan& plan) {
  const TrainConfig& c = plan.config;
  const bool stand_in = !may_run_all_ranks(plan);
  if (stand_in && c.documents.reset_attention_mask && plan.dp() > 1) return kReplicaDocumentsTolerance;
  const bool shares = c.optimizer == OptimizerKind::kMuon && c.muon_distribution != MuonDistribution::kDuplicated;
  if (stand_in && shares) return kSharedMatricesTolerance;
  const bool repeated = plan.schedule.num_microbatches > kFewMicrobatches;
  return repeated && reductions_delay_gathers(plan) ? kReducedPassesTolerance : kStepTimeTolerance;
}

std::string tolerance_condition(const RunPlan& plan) {
  const MoeConfig& moe = plan.config.model.moe;
  return moe.enabled() && !moe.force_balance && !plan.config.pads_experts() ? " with evenly loaded experts" : "";
}

bool may_run_all_ranks(const RunPlan& plan) {
  constexpr int kMostRanks = 64;
  constexpr int64_t kLayersTogether = 512;  // the number that runs on shapes in half a second
  constexpr int64_t kExpertsAsLayer = 8;    // whose products take as long as the rest of a layer
  const ModelConfig& model = plan.config.model;
  const int world = plan.mesh.world_size();
  const int64_t experts = model.moe.enabled() ? model.moe.num_experts / plan.mesh.size(Axis::kEp) : 0;
  const int64_t layers = model.num_layers * (kExpertsAsLayer + experts) / kExpertsAsLayer;
  return world <= kMostRanks && layers * world / plan.mesh.size(Axis::kPp) <= kLayersTogether;
}

bool reductions_delay_gathers(const RunPlan& plan) {
  return plan.config.grad_sync == GradSync::kMicrobatch && plan.zero().parameters && plan.mesh.size(Axis::kPp) > 1;
}

bool passes_share_gathers(const RunPlan& plan) { return plan.config.overlap_moe && plan.zero().parameters; }

double mfu(const RunPlan& plan, double step_ns) {
  if (step_ns <= 0) return 0;  // --what-if can turn off all kernels
  const TrainConfig& c = plan.config;
  const double flops = c.model.training_flops_per_token(c.model.seq_length) *
                       static_cast<double>(plan.tokens_per_step()) / c.parallel.world;
  return flops / (step_ns * 1e-9 * plan.profile.peak_flops(c.element_dtype()));
}

}  // namespace ranklab
