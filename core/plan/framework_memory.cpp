#include "core/plan/framework_memory.h"

#include <algorithm>
#include <numeric>

#include "core/config/state_types.h"

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

// Logits of a microbatch, on the rank that has the head.
double logits(const RunPlan& plan) {
  const ParallelDims& dims = plan.mesh.dims();
  const ModelConfig& m = plan.config.model;
  return static_cast<double>(plan.micro_batch_size * m.seq_length / dims.cp) *
         static_cast<double>((m.vocab_size + dims.tp - 1) / dims.tp);
}

// Attention's scores of a microbatch in a layer, on a rank; 0 where they are never in memory, or recomputed.
double scores(const RunPlan& plan) {
  const TrainConfig& c = plan.config;
  if (c.attention_backend != "unfused" || c.recompute_granularity != "none") return 0;
  const ParallelDims& dims = plan.mesh.dims();
  const auto keys = static_cast<double>(c.model.seq_length);
  return static_cast<double>(plan.micro_batch_size) * static_cast<double>(c.model.num_attention_heads) / dims.tp *
         keys * keys / dims.cp;
}

int64_t layers_of(const RunPlan& plan, int pp_rank) {
  int64_t layers = 0;
  for (const int stage : plan.schedule.stages_of(pp_rank))
    layers += plan.stage_layers[static_cast<size_t>(plan.schedule.part(stage))];
  return layers;
}

// What cuBLAS is given to work in: 32 MiB from Hopper on, 8 MiB and an eighth before.
double cublas_workspace(const HardwareProfile& profile) {
  constexpr double kMiB = 1024 * 1024;
  return (profile.peak_flops_fp8 > 0 ? 32 : 8.125) * kMiB;
}

// How much more the software keeps of a microbatch than this project does.
double kept_ratio(const RunPlan& plan, const RankRecord& rank) {
  const SoftwareMemory& software = plan.profile.software.memory;
  if (plan.config.recompute_granularity == "full") return 1;  // the inputs of layers, in any software
  const double own = std::accumulate(rank.kept_bytes.begin(), rank.kept_bytes.end(), 0.0);
  const double kept = plan.config.recompute_granularity == "selective" ? software.selective
                      : plan.config.model.moe.enabled()                ? software.experts
                                                                       : software.activations;
  if (own <= 0) return kept;
  // This project's one copy of scores in 16 bits is every software's, too.
  constexpr double kOwnScoreBytes = 2;
  const bool dropped = plan.config.model.attention_dropout > 0;
  const double each = software.score_bytes + (dropped ? software.dropped_score_bytes : 0);
  const double all_scores = scores(plan) * static_cast<double>(layers_of(plan, rank.pp_rank));
  const double own_scores = std::min(kOwnScoreBytes * all_scores, own);
  return (kept * (own - own_scores) + own_scores + each * all_scores) / own;
}

// Where 16-bit gradients are added up in fp32: the 16-bit ones that a software keeps beside them.
double copied_gradients(const RunPlan& plan, const RankRecord& rank) {
  const StateTypes types = state_types(plan);
  if (types.main_grads != DType::kFloat32 || types.param_bytes() != 2) return 0;
  return plan.profile.software.memory.gradient_copies * bytes_of(rank.after, {MemoryCategory::kParameters});
}

}  // namespace

FrameworkMemory framework_memory(const RunPlan& plan, const RankRecord& rank) {
  using enum MemoryCategory;
  const SoftwareMemory& software = plan.profile.software.memory;
  FrameworkMemory out;
  out.states = bytes_of(rank.after, {kParameters, kGradients, kOptimizer}) + copied_gradients(plan, rank);
  out.workspace = software.workspace_bytes + cublas_workspace(plan.profile) +
                  std::min(software.exchange_bytes, 2 * bytes_of(rank.after, {kParameters}));
  const double most = bytes_of(rank.highest, {kActivations});
  // The recorded peak includes 16-bit logits and their gradient, which no microbatch keeps for its backward.
  const double at_loss = has_head(plan.schedule, rank.pp_rank) ? logits(plan) : 0;
  const double own_loss = std::min(4 * at_loss, most);
  out.activations = (most - own_loss) * kept_ratio(plan, rank) + bytes_of(rank.highest, {kGathered});
  out.loss = own_loss + software.logit_bytes * at_loss;
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
