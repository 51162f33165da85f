#include "cli/plan/plan_memory.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>

#include "backends/meta/meta_world.h"
#include "cli/common/json_output.h"
#include "cli/common/memory_json.h"
#include "cli/common/model_text.h"
#include "cli/common/pipeline_text.h"
#include "cli/common/style.h"
#include "cli/world/make_world.h"
#include "core/base/text.h"
#include "core/config/recompute_choice.h"
#include "core/config/requirements.h"
#include "core/config/sharding.h"
#include "core/config/state_types.h"
#include "core/plan/layer_bytes.h"
#include "core/plan/record_step.h"
#include "core/plan/step_time.h"
#include "core/runtime/memory/check.h"
#include "core/runtime/memory/measure.h"
#include "core/sim/memory_scope.h"
#include "core/spec/paper_layer_bytes.h"

namespace ranklab {
namespace {

constexpr size_t kCategories = static_cast<size_t>(MemoryCategory::kCount);

std::string bytes_text(double bytes) { return bytes == 0 ? "-" : human_bytes(bytes); }
std::string bytes_text(int64_t bytes) { return bytes_text(static_cast<double>(bytes)); }

// Among the ranks of one pipeline rank, the one that used the most memory.
const MeasuredMemory* fullest_measured(const RunPlan& plan, const std::vector<MeasuredMemory>& measured, int pp_rank) {
  const MeasuredMemory* fullest = nullptr;
  for (const MeasuredMemory& rank : measured) {
    if (plan.mesh.coordinate(Axis::kPp, rank.global_rank) != pp_rank) continue;
    if (fullest == nullptr || rank.peak_bytes > fullest->peak_bytes) fullest = &rank;
  }
  return fullest;
}

double percent_off(int64_t estimate, int64_t measured) {
  return 100 * (static_cast<double>(estimate) / static_cast<double>(measured) - 1);
}

template <typename Bytes>
std::string row_text(const std::string& title, const Bytes& bytes, const std::string& remark) {
  std::string text = strprintf("    %-24s", title.c_str());
  int64_t sum = 0;
  for (const int64_t count : bytes) {
    text += strprintf(" %11s", bytes_text(count).c_str());
    sum += count;
  }
  return text + strprintf(" %11s%s\n", bytes_text(sum).c_str(), remark.c_str());
}

std::string ranks_text(const RunPlan& plan, const StepRecord& record, const std::vector<MeasuredMemory>& measured,
                       const Style& style) {
  std::string heading = strprintf("  %-26s", "a rank at its peak");
  for (size_t c = 0; c < kCategories; ++c)
    heading += strprintf(" %11s", std::string(name(static_cast<MemoryCategory>(c))).c_str());
  std::string text = style.bold(heading + strprintf(" %11s", "together")) + "\n";
  const int pp = plan.mesh.size(Axis::kPp);
  for (int pp_rank = 0; pp_rank < pp; ++pp_rank) {
    const RankRecord& peak = record.of_pipeline_rank(pp_rank);
    const std::string who = pp == 1 ? "every rank" : "pipeline rank " + std::to_string(pp_rank);
    const double share = static_cast<double>(together(peak.at_peak)) / static_cast<double>(plan.profile.memory_bytes);
    text += row_text(who, peak.at_peak,
                     measured.empty() ? strprintf("  %.3g %% of %s", 100 * share, plan.profile.name.c_str()) : "");
    const MeasuredMemory* seen = fullest_measured(plan, measured, pp_rank);
    if (seen == nullptr) continue;
    text += row_text(strprintf("  measured, rank %d", seen->global_rank), seen->at_peak,
                     strprintf("  %+.1f %%", percent_off(together(peak.at_peak), seen->peak_bytes)));
    text += row_text("  before its first step", seen->at_start_peak, "");
  }
  return text;
}

struct StageBytes {
  std::string formula;
  double bytes = 0;
  double expert_bytes = 0;  // of the experts' parameters, which other groups of ranks shard
};
// Bytes per parameter when N ranks shard it, without buckets' padding: "p + (g + o)/N".
std::vector<StageBytes> stage_bytes(const RunPlan& plan) {
  const StateTypes types = state_types(plan);
  std::vector<StageBytes> stages;
  for (const ZeroStage& zero : kZeroStages) {
    std::array<StageBytes, 2> sums;  // of what every rank holds, and of what is sharded
    const auto add = [&](const char* letter, double bytes, bool sharded) {
      StageBytes& sum = sums[sharded];
      sum.formula += (sum.formula.empty() ? "" : " + ") + std::string(letter);
      sum.bytes += bytes;
    };
    add("p", static_cast<double>(types.param_bytes()), zero.parameters);
    add("g", static_cast<double>(types.grad_bytes()), zero.gradients);
    add("o", mean_optimizer_bytes(plan), zero.optimizer);
    auto& [whole, shared] = sums;
    if (shared.formula.size() > 1) shared.formula = "(" + shared.formula + ")";
    if (!shared.formula.empty()) shared.formula = (whole.formula.empty() ? "" : " + ") + shared.formula + "/N";
    const auto held = [&](Axis shards) { return whole.bytes + shared.bytes / plan.mesh.size(shards); };
    stages.push_back({whole.formula + shared.formula, held(Axis::kDpShard), held(Axis::kEdpShard)});
  }
  return stages;
}

// " (fp32: master weight and moments)"; "" if they have the type of the parameters
std::string kept_text(const StateTypes& types) {
  const auto type = [](DType dtype) { return std::string(name(dtype)); };
  StateTypes own = types;
  own.outer_numbers = 0;
  const std::string outer = types.outer_numbers > 0
                                ? strprintf("%ld of DiLoCo's outer optimizer", static_cast<long>(types.outer_bytes()))
                                : "";
  if (own == usual_state_types(types.params, types.moments, types.matrix_moments)) {
    if (!types.has_masters()) return outer.empty() ? "" : " (" + outer + ")";
    return " (fp32: master weight and moments" + (outer.empty() ? "" : "; " + outer) + ")";
  }
  std::string text = " (" + (types.has_masters() ? type(types.main_params) : std::string("no")) + " master weight";
  if (types.moments == 2) text += ", " + type(types.exp_avg) + " and " + type(types.exp_avg_sq) + " moments";
  return text + (outer.empty() ? "" : "; " + outer) + ")";
}

// "N = dp 8"; "N = 4, of dp 8" if groups of 4 shard; with what differs for experts
std::string sharding_ranks_text(const RunPlan& plan) {
  const int shards = plan.mesh.size(Axis::kDpShard);
  const std::string text =
      "N = " + (shards < plan.replicas() ? std::to_string(shards) + ", of " : "") + replicas_text(plan);
  return plan.config.model.moe.enabled() ? text + strprintf("; of experts %d", plan.mesh.size(Axis::kEdpShard)) : text;
}

std::string states_text(const RunPlan& plan, const Style& style) {
  const StateTypes types = state_types(plan);
  const bool experts = plan.config.model.moe.enabled();
  std::string text = style.bold("  states, bytes per parameter") +
                     strprintf("  parameter p %ld, gradient g %ld, optimizer o %.4g%s; %s\n",
                               static_cast<long>(types.param_bytes()), static_cast<long>(types.grad_bytes()),
                               mean_optimizer_bytes(plan), kept_text(types).c_str(), sharding_ranks_text(plan).c_str());
  const auto stages = stage_bytes(plan);
  for (size_t stage = 0; stage < stages.size(); ++stage) {
    text += strprintf("    ZeRO %zu  %-14s %8.4g%s%s\n", stage, stages[stage].formula.c_str(), stages[stage].bytes,
                      experts ? strprintf("  of experts %8.4g", stages[stage].expert_bytes).c_str() : "",
                      static_cast<int>(stage) == plan.zero_stage ? "  this run" : "");
  }
  if (accumulates_whole_gradients(plan))
    text += strprintf(
        "    at a step's end; until then %ld microbatches are accumulated in whole gradients (--grad-sync "
        "microbatch reduces each)\n",
        static_cast<long>(plan.num_microbatches));
  return text;
}

struct RecomputeRow {
  const char* name;
  bool chosen = false;
  int64_t layer_bytes = 0;  // per microbatch, for the layer that keeps the most
  int64_t activations = 0, together = 0;
  double step_ms = 0, paper_layer_bytes = 0;
};

RecomputeRow recompute_row(RunPlan plan, const StepRecord& chosen_record, const char* name) {
  const bool chosen = plan.config.recompute_granularity == name;
  plan.config.recompute_granularity = name;
  if (!chosen) plan.config.recompute_num_layers = 0;
  const StepRecord record = chosen ? chosen_record : record_step(plan, make_meta_world);
  const RankRecord& fullest = record.fullest();
  return {.name = name,
          .chosen = chosen,
          .layer_bytes = layer_bytes(plan, make_meta_world),
          .activations = fullest.highest[static_cast<size_t>(MemoryCategory::kActivations)],
          .together = together(fullest.at_peak),
          .step_ms = static_cast<double>(record.step_ns) * 1e-6,
          .paper_layer_bytes = paper_layer_bytes(plan.config.model, plan.micro_batch_size, plan.mesh.size(Axis::kTp),
                                                 plan.sequence_parallel, recompute_policy(plan.config).granularity)};
}

std::vector<RecomputeRow> recompute_rows(const RunPlan& plan, const StepRecord& record) {
  return {recompute_row(plan, record, "none"), recompute_row(plan, record, "selective"),
          recompute_row(plan, record, "full")};
}

std::string activations_text(const RunPlan& plan, const StepRecord& record, const Style& style) {
  const ModelConfig& m = plan.config.model;
  std::string text = style.bold("  activations") +
                     strprintf("  microbatches of b = %ld sequences, s = %ld, h = %ld, a = %ld heads\n",
                               static_cast<long>(plan.micro_batch_size), static_cast<long>(m.seq_length),
                               static_cast<long>(m.hidden_size), static_cast<long>(m.num_attention_heads));
  text +=
      "    recompute    a layer keeps          in s b h  the paper's GPT block   activations    together      step\n";
  const auto sbh = static_cast<double>(plan.micro_batch_size * m.seq_length * m.hidden_size);
  const std::vector<RecomputeRow> rows = recompute_rows(plan, record);
  for (const RecomputeRow& row : rows) {
    text += strprintf("    %-10s %15s  %11.3g bytes  %11s %9.3g  %12s %11s  %11s%s\n", row.name,
                      bytes_text(row.layer_bytes).c_str(), static_cast<double>(row.layer_bytes) / sbh,
                      bytes_text(row.paper_layer_bytes).c_str(), row.paper_layer_bytes / sbh,
                      bytes_text(row.activations).c_str(), bytes_text(row.together).c_str(),
                      human_ns(row.step_ms * 1e6).c_str(), row.chosen ? "  this run" : "");
  }
  return text + style.dim(
                    "    the paper's block (arXiv 2205.05198: s b h (34 + 5 a s / h), 34 s b h, 2 s b h) keeps 2 bytes "
                    "an activation, the scores of\n    attention and dropout's masks as bytes; here elements have " +
                    std::to_string(plan.config.element_bytes()) +
                    " bytes, attention keeps one number per query instead of the\n    scores, norms and "
                    "activation functions are recomputed, and a mask has a full element. Selective saves\n    "
                    "attention's output alone.\n");
}

nlohmann::ordered_json ranks_json(const RunPlan& plan, const StepRecord& record,
                                  const std::vector<MeasuredMemory>& measured) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (int pp_rank = 0; pp_rank < plan.mesh.size(Axis::kPp); ++pp_rank) {
    const RankRecord& peak = record.of_pipeline_rank(pp_rank);
    nlohmann::ordered_json row = {{"pp_rank", pp_rank},
                                  {"at_peak", category_bytes_json(peak.at_peak)},
                                  {"highest", category_bytes_json(peak.highest)},
                                  {"tolerance", kPeakTolerance}};
    if (const MeasuredMemory* seen = fullest_measured(plan, measured, pp_rank)) {
      row["measured"] = {{"global_rank", seen->global_rank},
                         {"at_peak", category_bytes_json(seen->at_peak)},
                         {"highest", category_bytes_json(seen->highest)},
                         {"peak_bytes", seen->peak_bytes},
                         {"at_start_peak", category_bytes_json(seen->at_start_peak)},
                         {"start_highest", category_bytes_json(seen->start_highest)},
                         {"difference_percent", percent_off(together(peak.at_peak), seen->peak_bytes)}};
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string plan_memory_text(const RunPlan& plan, const std::vector<MeasuredMemory>& measured, const Style& style) {
  const TrainConfig& c = plan.config;
  std::string text = style.bold(model_name(c) + " on " + layout_text(plan, true)) +
                     strprintf(", %s, ZeRO stage %d, recomputation %s\n", std::string(name(c.element_dtype())).c_str(),
                               plan.zero_stage, c.recompute_granularity.c_str());
  const StepRecord record = record_step(plan, make_meta_world);
  text += ranks_text(plan, record, measured, style);
  if (!record.documents_unknown.empty()) text += style.yellow("  warning  " + record.documents_warning()) + "\n";
  const std::string bound = record.documents_unknown.empty()
                                ? strprintf("    estimate, within %.0f %% of the measured peak", 100 * kPeakTolerance) +
                                      tolerance_condition(plan)
                                : std::string("    estimate");
  text += style.dim(bound + (measured.empty() ? "; --measure runs two steps and compares\n" : "\n"));
  return text + states_text(plan, style) + activations_text(plan, record, style);
}

nlohmann::ordered_json plan_memory_json(const RunPlan& plan, const std::vector<MeasuredMemory>& measured) {
  const StepRecord record = record_step(plan, make_meta_world);
  nlohmann::ordered_json stages = nlohmann::ordered_json::array(), recompute = nlohmann::ordered_json::array();
  for (const StageBytes& stage : stage_bytes(plan)) {
    stages.push_back({{"formula", stage.formula}, {"bytes_per_parameter", stage.bytes}});
    if (plan.config.model.moe.enabled()) stages.back()["bytes_per_expert_parameter"] = stage.expert_bytes;
  }
  for (const RecomputeRow& row : recompute_rows(plan, record)) {
    recompute.push_back({{"granularity", row.name},
                         {"layer_bytes", row.layer_bytes},
                         {"paper_layer_bytes", row.paper_layer_bytes},
                         {"activations", row.activations},
                         {"together", row.together},
                         {"virtual_step_ms", row.step_ms}});
  }
  return {{"preset", plan.config.preset},
          {"zero_stage", plan.zero_stage},
          {"dp", plan.dp()},
          {"recompute_granularity", plan.config.recompute_granularity},
          {"limit_bytes", plan.profile.memory_bytes},
          {"ranks", ranks_json(plan, record, measured)},
          {"zero_stages", stages},
          {"recompute", recompute}};
}

std::vector<MeasuredMemory> measure(RunPlan plan) {
  check_command(plan.config, Capability::kMeasuredRanks, "plan memory");
  check_memory(plan, memory_of_ranks(plan.config));
  install_booking_allocator();
  plan.config.save_dir.clear();
  plan.config.load.clear();
  if (plan.config.diloco.enabled()) plan = with_outer_update(std::move(plan));
  return measure_memory(default_components(make_world(plan.config), plan), plan);
}

}  // namespace

int run_plan_memory(const RunPlan& plan, const PlanMemoryRequest& request) {
  std::vector<MeasuredMemory> measured;
  if (request.measure) measured = measure(plan);
  const std::string text = request.json ? json_result(plan_memory_json(plan, measured))
                                        : plan_memory_text(plan, measured, style_for(stdout));
  std::fputs(text.c_str(), stdout);
  return 0;
}

}  // namespace ranklab
