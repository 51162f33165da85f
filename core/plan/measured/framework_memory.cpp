#include "core/plan/measured/framework_memory.h"

#include <numeric>

#include "core/config/pipeline_layout.h"
#include "core/config/recompute_choice.h"
#include "core/config/sharding.h"
#include "core/config/state_types.h"
#include "core/plan/measured/hybrid_memory.h"
#include "core/sim/gpu_generation.h"

namespace ranklab {
namespace {

double bytes_of(const CategoryBytes& bytes, std::initializer_list<MemoryCategory> categories) {
  return std::accumulate(categories.begin(), categories.end(), 0.0, [&](double sum, MemoryCategory category) {
    return sum + static_cast<double>(bytes[static_cast<size_t>(category)]);
  });
}

bool has_head(const Schedule& schedule, int pp_rank) {
  return std::ranges::any_of(schedule.stages_of(pp_rank), [&](int stage) { return schedule.is_last(stage); });
}

// The number of logits of a microbatch, on the rank that has the head.
double logits(const RunPlan& plan) {
  const ParallelDims& dims = plan.mesh.dims();
  const ModelConfig& m = plan.config.model;
  return static_cast<double>(plan.micro_batch_size * m.seq_length / dims.cp) *
         static_cast<double>((m.vocab_size + dims.tp - 1) / dims.tp);
}

// The number of attention scores of a microbatch in one layer, on one rank; 0 if they are never in memory.
double scores(const RunPlan& plan) {
  const TrainConfig& c = plan.config;
  if (c.attention_backend != "unfused") return 0;
  const ParallelDims& dims = plan.mesh.dims();
  const auto keys = static_cast<double>(c.model.seq_length);
  return static_cast<double>(plan.micro_batch_size) * static_cast<double>(c.model.num_attention_heads) / dims.tp *
         keys * keys / dims.cp;
}

int64_t layers_with_scores(const RunPlan& plan, int pp_rank) {
  return std::ranges::count_if(layers_of_rank(plan, pp_rank),
                               [&](int64_t layer) { return plan.config.model.has_softmax(layer); });
}

// Bytes of workspaces: cuBLAS's for the forward and the backward thread, and the software's own.
double workspaces(const RunPlan& plan) {
  constexpr int kThreads = 2;
  const SoftwareMemory& software = plan.profile.software.memory;
  const double grouped = plan.config.model.moe.enabled() ? software.grouped_workspaces : 0;
  return kThreads * cublas_workspace_bytes(plan.profile) +
         (software.own_workspaces + grouped) * engine_workspace_bytes(gpu_generation(plan.profile));
}

// How much more the software keeps of a microbatch than this project does, as a factor.
double kept_ratio(const RunPlan& plan, const RankRecord& rank) {
  const SoftwareMemory& software = plan.profile.software.memory;
  if (plan.config.recompute_granularity == "full") return 1;  // in any software, only the inputs of layers
  // Without the 16-bit logits, which the loss keeps for its backward and which belong to no layer.
  const double own = std::accumulate(rank.kept_bytes.begin(), rank.kept_bytes.end(), 0.0) -
                     (has_head(plan.schedule, rank.pp_rank) ? 2 * logits(plan) : 0);
  const double kept = plan.config.recompute_granularity == "selective" ? software.selective
                      : plan.config.model.moe.enabled()                ? software.experts
                                                                       : software.activations;
  if (own <= 0) return kept;
  // Every software has one copy of the scores in 16 bits, as this project does.
  constexpr double kOwnScoreBytes = 2;
  const bool dropped = plan.config.model.attention_dropout > 0;
  const double each = software.score_bytes + (dropped ? software.dropped_score_bytes : 0);
  const bool kept_to_backward = !recompute_policy(plan.config).core_attention();
  const double all_scores =
      (kept_to_backward ? scores(plan) : 0) * static_cast<double>(layers_with_scores(plan, rank.pp_rank));
  const double own_scores = std::min(kOwnScoreBytes * all_scores, own);
  const auto of_hybrid = software.megatron_hybrids && plan.config.recompute_granularity == "none"
                             ? hybrid_kept_bytes(plan, rank.pp_rank)
                             : std::nullopt;
  return (of_hybrid.value_or(kept * (own - own_scores)) + own_scores + each * all_scores) / own;
}

// Additional copies of parameters and gradients in a software: the accumulators of 16-bit gradients, copies of
// gradients that this project accumulates in fp32, and parameters sharded in fp32.
double copied_states(const RunPlan& plan, const RankRecord& rank) {
  const StateTypes types = state_types(plan);
  if (types.param_bytes() != 2) return 0;
  const SoftwareMemory& software = plan.profile.software.memory;
  const double parameters = bytes_of(rank.after, {MemoryCategory::kParameters}) / 2;
  if (plan.zero().parameters && types.has_masters() && software.shard_bytes > 0)
    return software.shard_bytes * parameters;
  return parameters * (types.grad_bytes() == 2 ? software.accumulator_bytes : 2 * software.gradient_copies);
}

// For gradients accumulated in 16 bits: the fp32 copy of its share that the optimizer has between steps.
double fp32_gradients(const RunPlan& plan, const RankRecord& rank) {
  const StateTypes types = state_types(plan);
  if (types.grad_bytes() != 2 || !types.has_masters()) return 0;
  const double elements = bytes_of(rank.after, {MemoryCategory::kOptimizer}) / mean_optimizer_bytes(plan);
  return plan.profile.software.memory.fp32_gradients * size_bytes(DType::kFloat32) * elements;
}

// Inputs of the rank's stages that are held between steps.
double stage_inputs(const RunPlan& plan, int pp_rank) {
  const ModelConfig& m = plan.config.model;
  const ParallelDims& dims = plan.mesh.dims();
  const double elements = static_cast<double>(plan.micro_batch_size * m.seq_length * m.hidden_size) / dims.cp /
                          (plan.sequence_parallel ? dims.tp : 1);
  const std::vector<int> stages = plan.schedule.stages_of(pp_rank);
  const auto fed = std::ranges::count_if(stages, [&](int stage) { return !plan.schedule.is_first(stage); });
  return plan.profile.software.memory.stage_inputs * static_cast<double>(fed) * elements *
         static_cast<double>(state_types(plan).param_bytes());
}

// By how much gradients at the peak are larger than the shards after the step; less the activations that exist only at
// other moments, because the parts are added up.
double whole_gradients(const RankRecord& rank) {
  using enum MemoryCategory;
  const double more = bytes_of(rank.at_peak, {kGradients}) - bytes_of(rank.after, {kGradients});
  const double elsewhere =
      bytes_of(rank.highest, {kActivations, kGathered}) - bytes_of(rank.at_peak, {kActivations, kGathered});
  return std::max(0.0, more - std::max(0.0, elsewhere));
}

// What an outer update of DiLoCo needs besides its states: the movement that replicas average, which no backend reduces
// in place of other tensors.
double outer_update(const RunPlan& plan, const RankRecord& rank) {
  return plan.config.diloco.enabled() ? bytes_of(rank.highest, {MemoryCategory::kBuffers}) : 0;
}

}  // namespace

FrameworkMemory framework_memory(const RunPlan& plan, const RankRecord& rank) {
  using enum MemoryCategory;
  const SoftwareMemory& software = plan.profile.software.memory;
  FrameworkMemory out;
  out.states = bytes_of(rank.after, {kParameters, kGradients, kOptimizer}) + copied_states(plan, rank);
  // This project accumulates microbatches in whole gradients unless each microbatch is reduced; for other software,
  // such gradients are part of the measured figures.
  if (!plan.of_other_software() && shards_gradients(plan)) out.states += whole_gradients(rank);
  out.between_steps = fp32_gradients(plan, rank) + stage_inputs(plan, rank.pp_rank);
  // A delayed update is on its way during the next steps.
  (plan.config.diloco.sync_delay > 0 ? out.states : out.between_steps) += outer_update(plan, rank);
  out.workspace = workspaces(plan) + software.score_buffer_bytes * scores(plan) +
                  std::min(software.exchange_bytes, 2 * bytes_of(rank.after, {kParameters}));
  const double most = bytes_of(rank.highest, {kActivations});
  // The recorded peak includes the 16-bit logits and their gradient, which no microbatch keeps for its backward.
  const double at_loss = has_head(plan.schedule, rank.pp_rank) ? logits(plan) : 0;
  const double own_loss = std::min(4 * at_loss, most);
  // Without sharded parameters, gathered tensors are activations of tensor-parallel ranks.
  const double gathered = plan.zero().parameters ? software.gathered : 1;
  out.activations = (most - own_loss) * kept_ratio(plan, rank) + gathered * bytes_of(rank.highest, {kGathered});
  out.loss = own_loss + (plan.mesh.dims().tp > 1 ? software.shared_logit_bytes : software.logit_bytes) * at_loss;
  out.reserve = software.reserve * (out.activations + out.loss);
  out.context = kContextBytes;
  return out;
}

FrameworkMemory framework_memory(const RunPlan& plan, const StepRecord& record) {
  FrameworkMemory most;
  for (const RankRecord& rank : record.ranks) {
    const FrameworkMemory one = framework_memory(plan, rank);
    if (one.reserved() > most.reserved()) most = one;
  }
  return most;
}

}  // namespace ranklab
