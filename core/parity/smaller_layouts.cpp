#include "core/parity/smaller_layouts.h"

#include <numeric>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/config/one_rank.h"
#include "core/config/recompute_choice.h"
#include "core/config/sharding.h"

namespace ranklab {
namespace {

struct Change {
  const char* axis;
  const char* flags;
  bool (*there)(const RunPlan&);
  void (*apply)(TrainConfig&, const RunPlan&);
};

void without_pipeline(TrainConfig& c, const RunPlan& plan) {
  c.parallel.world /= plan.mesh.size(Axis::kPp);
  c.parallel.pp = 1;
  c.virtual_stages = 1;
  c.pipeline_schedule = TrainConfig{}.pipeline_schedule;
  c.pipeline_layout.clear();
}

constexpr Change kChanges[] = {
    {"tp", "--tp 1", [](const RunPlan& plan) { return plan.mesh.size(Axis::kTp) > 1; },
     [](TrainConfig& c, const RunPlan& plan) {
       c.parallel.world /= plan.mesh.size(Axis::kTp);
       c.parallel.tp = 1;
       c.sequence_parallel.reset();
     }},
    {"cp", "--cp 1", [](const RunPlan& plan) { return plan.mesh.size(Axis::kCp) > 1; },
     [](TrainConfig& c, const RunPlan& plan) {
       c.parallel.world /= plan.mesh.size(Axis::kCp);
       c.parallel.cp = 1;
       c.parallel.cp_heads = 1;
       c.context_sizes.clear();
       c.sep = 0;
     }},
    {"dp", "--dp 1",  // of each DiLoCo replica
     [](const RunPlan& plan) { return plan.dp() > plan.gradient_groups() && !loss_depends_on_dp(plan.config); },
     [](TrainConfig& c, const RunPlan& plan) {
       const int fewer = plan.dp() / plan.gradient_groups();
       c.parallel.world /= fewer;
       c.parallel.dp = 0;
       c.parallel.replicas = 1;
       c.diloco.replicas = plan.config.diloco.enabled() ? plan.gradient_groups() : 0;
       c.grad_sync = TrainConfig{}.grad_sync;
       c.num_microbatches = plan.num_microbatches * fewer;
     }},
    {"pp", "--pp 1", [](const RunPlan& plan) { return plan.mesh.size(Axis::kPp) > 1; }, without_pipeline},
    {"ep", "--ep 1", [](const RunPlan& plan) { return plan.mesh.size(Axis::kEp) > 1; },
     [](TrainConfig& c, const RunPlan&) { c.parallel.ep = 1; }},
    {"etp", "--etp 1", [](const RunPlan& plan) { return plan.mesh.size(Axis::kEtp) > 1; },
     [](TrainConfig& c, const RunPlan&) { c.parallel.etp = 1; }},
    {"overlap of tensor parallelism", "--no-tp-comm-overlap",
     [](const RunPlan& plan) { return plan.config.tp_comm_overlap && plan.sequence_parallel; },
     [](TrainConfig& c, const RunPlan&) { c.tp_comm_overlap = false; }},
    {"sequence parallelism", "--no-sequence-parallel", [](const RunPlan& plan) { return plan.sequence_parallel; },
     [](TrainConfig& c, const RunPlan&) { c.sequence_parallel = false; }},
    {"ZeRO", "--zero-stage 0", [](const RunPlan& plan) { return plan.zero_stage > 0; },
     [](TrainConfig& c, const RunPlan&) {
       c.zero_stage = 0;
       c.use_distributed_optimizer = false;
       c.sharding_strategy = TrainConfig{}.sharding_strategy;
       c.parallel.replicas = 1;
     }},
    {"schedule", "--pipeline-schedule 1f1b",
     [](const RunPlan& plan) {
       return plan.mesh.size(Axis::kPp) > 1 && plan.config.pipeline_schedule != TrainConfig{}.pipeline_schedule;
     },
     [](TrainConfig& c, const RunPlan&) {
       c.pipeline_schedule = TrainConfig{}.pipeline_schedule;
       c.virtual_stages = 1;
       c.pipeline_layout.clear();
     }},
    {"recomputation", "--recompute-granularity none",
     [](const RunPlan& plan) { return plan.config.recompute_granularity != "none"; },
     [](TrainConfig& c, const RunPlan&) {
       c.recompute_granularity = "none";
       c.recompute_num_layers = 0;
     }},
    {"overlap of experts", "--no-overlap-moe-expert-parallel-comm",
     [](const RunPlan& plan) { return plan.config.overlap_moe; },
     [](TrainConfig& c, const RunPlan&) { c.overlap_moe = false; }},
    {"overlap of shared experts", "--no-moe-shared-expert-overlap",
     [](const RunPlan& plan) { return plan.config.overlap_shared_experts; },
     [](TrainConfig& c, const RunPlan&) { c.overlap_shared_experts = false; }},
    {"padding of experts", "--no-moe-pad-expert-input-to-capacity",
     [](const RunPlan& plan) { return plan.config.pads_experts(); },
     [](TrainConfig& c, const RunPlan&) { c.pad_experts = false; }},
    {"delayed weight gradients of experts", "--no-delay-wgrad-compute",
     [](const RunPlan& plan) { return plan.config.delay_weight_grads; },
     [](TrainConfig& c, const RunPlan&) { c.delay_weight_grads = false; }},
    {"reductions of each microbatch", "--grad-sync step",
     [](const RunPlan& plan) { return plan.config.grad_sync == GradSync::kMicrobatch; },
     [](TrainConfig& c, const RunPlan&) { c.grad_sync = TrainConfig{}.grad_sync; }},
    {"overlap of parameter gathers", "--no-overlap-param-gather",
     [](const RunPlan& plan) { return overlaps_param_gather(plan); },
     [](TrainConfig& c, const RunPlan&) { c.overlap_param_gather = false; }},
    {"overlap of reductions", "--no-overlap-grad-reduce",
     [](const RunPlan& plan) { return plan.config.overlap_grad_reduce && plan.replicas() > 1; },
     [](TrainConfig& c, const RunPlan&) { c.overlap_grad_reduce = false; }},
};

// Keeps the microbatches the same, because capacity, balancing losses and dropout are computed per microbatch.
void keep_microbatches(TrainConfig& c, const RunPlan& plan) {
  c.micro_batch_size = 0;
  c.num_microbatches = plan.num_microbatches;
}

void fit_experts(TrainConfig& c, const RunPlan& plan) {
  const int ranks = c.parallel.world / c.parallel.pp;
  c.parallel.edp = 0;
  c.parallel.etp = std::gcd(plan.mesh.size(Axis::kEtp), ranks);
  c.parallel.ep = std::gcd(plan.mesh.size(Axis::kEp), ranks / c.parallel.etp);
}

}  // namespace

std::vector<SmallerLayout> smaller_layouts(const TrainConfig& config) {
  const RunPlan plan = resolve(config);
  std::vector<SmallerLayout> result;
  for (const Change& change : kChanges) {
    if (!change.there(plan)) continue;
    SmallerLayout smaller{change.axis, change.flags, config};
    keep_microbatches(smaller.config, plan);
    fit_experts(smaller.config, plan);
    change.apply(smaller.config, plan);
    if (smaller.config.parallel.world != plan.mesh.world_size()) fit_experts(smaller.config, plan);
    try {
      resolve(smaller.config);
    } catch (const Error&) {
      continue;  // the other features need this one
    }
    result.push_back(std::move(smaller));
  }
  return result;
}

std::string layout_flags(const TrainConfig& config) {
  const RunPlan plan = resolve(config);
  std::vector<std::string> flags;
  for (const auto& [axis, flag] : {std::pair{Axis::kDp, "--dp"},
                                   {Axis::kCp, "--cp"},
                                   {Axis::kTp, "--tp"},
                                   {Axis::kPp, "--pp"},
                                   {Axis::kEp, "--ep"},
                                   {Axis::kEtp, "--etp"}})
    if (plan.mesh.size(axis) > 1) flags.push_back(strprintf("%s %d", flag, plan.mesh.size(axis)));
  if (plan.sequence_parallel) flags.emplace_back("--sequence-parallel");
  if (plan.zero_stage > 0) flags.push_back("--zero-stage " + std::to_string(plan.zero_stage));
  if (config.grad_sync == GradSync::kMicrobatch) flags.emplace_back("--grad-sync microbatch");
  if (plan.mesh.size(Axis::kPp) > 1 && config.pipeline_schedule != TrainConfig{}.pipeline_schedule)
    flags.push_back("--pipeline-schedule " + config.pipeline_schedule);
  if (!config.pipeline_layout.empty()) flags.push_back("--pipeline-layout " + config.pipeline_layout);
  if (config.recompute_granularity != "none")
    flags.push_back("--recompute-granularity " + config.recompute_granularity);
  if (config.recompute_granularity == "selective")
    flags.push_back("--recompute-modules " + names_of(config.recompute_modules));
  return flags.empty() ? "one rank" : join(flags, " ");
}

}  // namespace ranklab
