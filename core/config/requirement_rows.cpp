#include <algorithm>

#include "core/base/text.h"
#include "core/config/device_choice.h"
#include "core/config/precision_settings.h"
#include "core/config/requirements.h"
#include "core/config/sharding.h"
#include "core/spec/model_rules.h"
#include "core/spec/moe_dispatcher_names.h"

namespace ranklab {
namespace {

// The stage may have been requested by any of three settings.
std::string stage_shown(const TrainConfig& c) { return "ZeRO stage " + std::to_string(resolve_zero_stage(c)); }

bool writes_to_peers(const TrainConfig& c) {
  const DispatcherText* row = dispatcher_text(c.moe_dispatcher);
  return c.model.moe.enabled() && c.parallel.ep > 1 && row != nullptr && row->writes_to_peers;
}

// Whether a GPU's FP8 units accumulate like this: GEMMs whose scales cover tiles and squares move their sums to fp32 at
// the end of each. An expert's GEMM has as many tokens as were routed to it, but the units only take multiples of 16.
bool sums_of_gpus(const TrainConfig& c) {
  const LinearPrecision linear = precision_settings(c).recipe.linear;
  if (linear.sum == SumPrecision::kFp32) return true;
  const auto all = [&](auto holds) {
    return holds(linear.activation) && holds(linear.weight) && holds(linear.gradient);
  };
  const Granularity granularity = linear.activation.granularity;
  const bool alike = all([&](const TensorPrecision& p) { return p.block == 0 && p.granularity == granularity; });
  const bool groups = all(has_scaled_groups) && linear.sum == SumPrecision::kHopperPromoted;
  return (alike || groups) && !c.model.moe.enabled();
}

// The reason why a microbatch's forward and backward are not the same work on the same addresses every time; "" if they
// are.
std::string not_replayable(const TrainConfig& c) {
  const auto above = [](const char* flag, auto value, auto usual) {
    return value > usual ? strprintf("%s %g", flag, static_cast<double>(value)) : std::string();
  };
  const ModelConfig& m = c.model;
  const ContextSplit& keys = c.context_split;
  const bool rings = keys.uses(ContextExchange::kP2p) || keys.uses(ContextExchange::kAllToAllP2p);
  for (const std::string& sized : {above("--cp", rings ? c.parallel.cp : 1, 1),
                                   above("--num-experts", c.pads_experts() ? 0 : m.moe.num_experts, 0)})
    if (!sized.empty()) return sized;
  if (c.overlap_moe) return "--overlap-moe-expert-parallel-comm";  // a graph holds one microbatch
  // Its experts follow from the numbers of the tokens in the global batch.
  if (m.moe.enabled() && m.moe.force_balance) return "--moe-router-force-load-balancing";
  if (zero_stage_row(resolve_zero_stage(c)).parameters) return stage_shown(c);
  if (c.documents.reset_attention_mask) return "--reset-attention-mask";
  return c.documents.reset_position_ids ? "--reset-position-ids" : "";
}

// A CUDA graph fixes its numbers when it is recorded, such as how many tokens an expert has, unless all are padded to
// their capacity. The device reads other varying inputs from tensors: where dropout and stochastic rounding draw their
// numbers, the amax of past steps, and the data of collectives. Messages are launched once the hosts on both sides
// have posted them, which a graph cannot wait for: those of a pipeline are outside its stages' graphs, those of a ring
// of attention are not.
void add_graphs(std::vector<Requirement>& rows) {
  const auto graph = [](Feature::Settings surroundings) {
    return Feature{.settings = {{"parallel.cuda_graph", "true"}},
                   .surroundings = std::move(surroundings),
                   .requested_by = [](const TrainConfig& c) { return c.cuda_graph; }};
  };
  rows.push_back({.feature = graph({}),
                  .needs = Capability::kRecordedPasses,
                  .why = "a CUDA graph saves kernel launches on a rank's own GPU; launches of simulated ranks only "
                         "cost virtual time"});
  Feature::Settings recorded;
  for (const Backend& row : backends())
    if (row.on_gpu.has(Capability::kRecordedPasses)) recorded.emplace_back("parallel.backend", row.name);
  rows.push_back({.feature = graph(recorded),
                  .excludes = Feature{.settings = {{"moe.num_experts", "8"}},
                                      .requested_by = [](const TrainConfig& c) { return !not_replayable(c).empty(); },
                                      .shown = not_replayable},
                  .why = "a CUDA graph is replayed exactly as captured: no messages inside a pass, and no numbers from "
                         "the host (tokens per expert, documents)",
                  .instead =
                      "--dp, --tp, --pp and --cp (--cp-comm-type all_gather or a2a) with a dense model or experts with "
                      "--moe-expert-capacity-factor and --moe-pad-expert-input-to-capacity, up to --zero-stage 2"});
}

// Features that need a capability of the world.
void add_devices(std::vector<Requirement>& rows) {
  rows.push_back({.feature = {.settings = {{"parallel.device", kHostDevice}},
                              .requested_by = [](const TrainConfig& c) { return c.device == kHostDevice; }},
                  .needs = Capability::kHostTensors,
                  .why = "ranks of this backend keep their tensors on GPUs"});
  rows.push_back({.feature = {.settings = {{"memory.optimizer_cpu_offload", "true"}},
                              .requested_by = [](const TrainConfig& c) { return c.optimizer_cpu_offload; }},
                  .needs = Capability::kGpuTensors,
                  .why = "--optimizer-cpu-offload moves optimizer states out of a GPU's memory"});
  rows.push_back({.feature = {.settings = {{"sim.collectives", "gloo"}, {"sim.transport", "tcp"}},
                              .requested_by =
                                  [](const TrainConfig& c) { return c.collectives == "gloo" || c.transport == "tcp"; }},
                  .needs = Capability::kHostTransport,
                  .why = "Gloo and TCP send host memory, and the ranks' tensors are on a GPU",
                  .instead = "--collectives direct --transport inproc"});
}

const Feature::Settings kExperts = {{"model.preset", "deepseek_v3_tiny"}, {"parallel.ep", "2"}};
const Feature::Settings kMicrobatches = {{"model.preset", "deepseek_v3_tiny"}, {"train.num_microbatches", "4"}};

Feature expert_overlap() {
  return {.settings = {{"parallel.overlap_moe", "true"}},
          .surroundings = kMicrobatches,
          .requested_by = [](const TrainConfig& c) { return c.overlap_moe; }};
}

void add_experts(std::vector<Requirement>& rows) {
  rows.push_back({.feature = {.settings = {{"parallel.moe_dispatcher", "rdep"}},
                              .surroundings = kExperts,
                              .requested_by = writes_to_peers},
                  .needs = Capability::kPeerMemory,
                  .why = "the dispatcher writes into host memory shared by the ranks, and these ranks share none",
                  .instead = "--moe-token-dispatcher-type alltoall"});
}

void add_precision(std::vector<Requirement>& rows) {
  rows.push_back({.feature = {.settings = {{"precision.recipe", "deepseek_v3"}, {"precision.sums", "hopper"}},
                              .requested_by = [](const TrainConfig& c) { return !sums_of_gpus(c); },
                              .shown =
                                  [](const TrainConfig& c) {
                                    const PrecisionRecipe recipe = precision_settings(c).recipe;
                                    return "recipe " + recipe.name + ", --fp8-accumulation " +
                                           std::string(name(recipe.linear.sum));
                                  }},
                  .needs = Capability::kEmulatedSums,
                  .why = "GPUs accumulate so with scales per tensor or row and not in experts; with tiles of 128 they "
                         "promote sums to fp32 after each tile",
                  .instead = "--fp8-accumulation fp32"});
}

void add_commands(std::vector<Requirement>& rows) {
  rows.push_back(
      {.feature = {.command = "ranklab debug, train --viz"},
       .needs = Capability::kHeldRanks,
       .why = "only ranks that are threads of this process can be paused and watched: simulated ranks in one process"});
  rows.push_back({.feature = {.command = "plan memory --measure"},
                  .needs = Capability::kMeasuredRanks,
                  .why = "--measure measures the memory of simulated ranks",
                  .instead = "no --measure"});
}

// Features that exclude another feature.

bool splits_all_backwards(const RunPlan& plan) {
  return std::ranges::none_of(plan.schedule.ranks, [](const std::vector<Action>& actions) {
    return std::ranges::any_of(actions, [](const Action& action) {
      return action.kind == ActionKind::kBW || action.kind == ActionKind::kFBW;
    });
  });
}

void add_overlap(std::vector<Requirement>& rows) {
  rows.push_back(
      {.feature = expert_overlap(),
       .excludes = Feature{.settings = {{"moe.num_experts", "0"}},
                           .requested_by = [](const TrainConfig& c) { return !c.model.moe.enabled(); }},
       .why = "--overlap-moe-expert-parallel-comm overlaps the communication of experts, and this model has none",
       .instead = "a preset with experts (deepseek_v3_tiny)"});
  rows.push_back({.feature = expert_overlap(),
                  .excludes = Feature{.settings = {{"parallel.pipeline_schedule", "zb-h1"}},
                                      .surroundings = {{"parallel.pp", "2"}},
                                      .requested_by_plan = splits_all_backwards},
                  .why = "with backward split into B and W, there is no whole layer to overlap with",
                  .instead = "a schedule with BW (1f1b, dualpipe)"});
}

void add_sharding(std::vector<Requirement>& rows) {
  rows.push_back(
      {.feature = {.settings = {{"parallel.replicas", "2"}},
                   .surroundings = {{"parallel.dp", "4"}, {"parallel.zero_stage", "1"}},
                   .requested_by = [](const TrainConfig& c) { return c.parallel.replicas > 1 && !c.diloco.enabled(); }},
       .excludes = Feature{.settings = {{"parallel.zero_stage", "0"}},
                           .requested_by =
                               [](const TrainConfig& c) { return !zero_stage_row(resolve_zero_stage(c)).optimizer; },
                           .shown = stage_shown},
       .why = "--num-distributed-optimizer-instances makes groups of ranks that shard, but nothing is sharded",
       .instead = "--zero-stage " + zero_stage_numbers(1)});
}

// Requirements of the model's own options.
void add_model(std::vector<Requirement>& rows) {
  const auto feature_of = [](const ModelOption& option) {
    return Feature{.settings = {option.setting},
                   .requested_by = [chosen = option.chosen](const TrainConfig& c) { return chosen(c.model); },
                   .shown = [shown = option.shown](const TrainConfig& c) { return shown(c.model); }};
  };
  for (const ModelRule& rule : model_rules())
    rows.push_back({.feature = feature_of(rule.option),
                    .excludes = feature_of(rule.excluded),
                    .why = rule.why,
                    .instead = rule.instead});
}

std::vector<Requirement> make_requirements() {
  std::vector<Requirement> rows;
  add_devices(rows);  // first, so that a missing device is the error that gets reported
  add_graphs(rows);
  add_experts(rows);
  add_precision(rows);
  add_commands(rows);
  add_overlap(rows);
  add_sharding(rows);
  add_model(rows);
  return rows;
}

}  // namespace

std::span<const Requirement> requirements() {
  static const std::vector<Requirement> kRows = make_requirements();
  return kRows;
}

}  // namespace ranklab
