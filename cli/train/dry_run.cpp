#include "cli/train/dry_run.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "cli/common/json_output.h"
#include "cli/common/kernels_json.h"
#include "cli/common/memory_json.h"
#include "cli/common/model_text.h"
#include "cli/common/pipeline_text.h"
#include "cli/topo/topology_text.h"
#include "cli/training_module.h"
#include "core/base/counted.h"
#include "core/base/text.h"
#include "core/config/sharding.h"
#include "core/plan/measured/plan_band.h"
#include "core/plan/report/axis_traffic.h"
#include "core/plan/step_time.h"

namespace ranklab {
namespace {

struct DryRun {
  RankRecord memory;  // of the rank that needs the most memory
  FrameworkMemory on_gpu = {};
  std::vector<AxisTraffic> traffic;
  StepTime time;
  double mfu = 0;
  bool documents_known = true;  // whether their ends are known, if attention stays within documents
  std::vector<std::string> warnings;
};

// Options for less memory that the run does not use yet, the cheapest first.
std::string memory_advice(const RunPlan& plan) {
  const TrainConfig& c = plan.config;
  std::vector<std::string> ways;
  if (accumulates_whole_gradients(plan)) ways.push_back("reduce each microbatch (--grad-sync microbatch)");
  if (plan.replicas() > 1 && !plan.zero().parameters) ways.push_back("raise --zero-stage");
  if (plan.micro_batch_size > 1) ways.push_back("lower --micro-batch-size");
  if (c.recompute_granularity != "full") ways.push_back("recompute activations (--recompute-granularity full)");
  ways.push_back("raise --tp or --pp");
  std::string text;
  for (const std::string& way : ways) text += (text.empty() ? "" : ", ") + way;
  return text + "; ranklab plan memory shows what each saves";
}

DryRun make_dry_run(const RunPlan& plan, const StepRecord& record, const std::string& absent_data) {
  DryRun out{.memory = record.fullest(), .traffic = {}, .time = {}, .warnings = {}};
  out.on_gpu = framework_memory(plan, record);
  out.traffic = axis_traffic(record, plan);
  out.time = time_of(record);
  out.mfu = mfu(plan, out.time.total_ns);
  const double bytes =
      plan.profile.kernels == nullptr ? static_cast<double>(together(out.memory.at_peak)) : out.on_gpu.on_device();
  if (bytes > static_cast<double>(plan.profile.memory_bytes)) {
    out.warnings.push_back(
        strprintf("a rank needs about %s, and %s has %s: %s", human_bytes(bytes).c_str(), plan.profile.title.c_str(),
                  human_bytes(static_cast<double>(plan.profile.memory_bytes)).c_str(), memory_advice(plan).c_str()));
  }
  if (const std::string hint = fp32_hint(plan); !hint.empty()) out.warnings.push_back(hint);
  out.documents_known = record.documents_unknown.empty();
  if (!out.documents_known)
    out.warnings.push_back(record.documents_warning());
  else if (!absent_data.empty())
    out.warnings.push_back("a run on this machine would be refused: " + absent_data);
  return out;
}

// "2.80 GFLOP"
std::string flop_text(double flops) {
  constexpr std::array<const char*, 7> kUnits = {"", "k", "M", "G", "T", "P", "E"};
  size_t unit = 0;
  for (; flops >= 1000 && unit + 1 < kUnits.size(); ++unit) flops /= 1000;
  return strprintf("%.3g %sFLOP", flops, kUnits[unit]);
}

// GPU memory as the plan's software and its allocator use it.
std::string on_gpu_text(const FrameworkMemory& memory, const RunPlan& plan) {
  std::string text = "  of a GPU, as " + plan.config.software + " takes it\n";
  for (const auto& [part, bytes] : memory.parts())
    if (bytes > 0) text += strprintf("    %-12s %10s\n", part, human_bytes(bytes).c_str());
  const auto [least, most] = plan_band(plan.config.software).on_device(memory);
  return text + strprintf("    %-12s %10s  %.3g %% of %s; in 90 %% of %s %s to %s\n", "together",
                          human_bytes(memory.on_device()).c_str(),
                          100 * memory.on_device() / static_cast<double>(plan.profile.memory_bytes),
                          plan.profile.name.c_str(), plan_band_runs(plan.config.software).c_str(),
                          human_bytes(least).c_str(), human_bytes(most).c_str());
}

std::string memory_text(const DryRun& run, const RunPlan& plan, const Style& style) {
  const auto row = [](const char* what, int64_t bytes, const std::string& remark) {
    return strprintf("    %-12s %10s", what, human_bytes(static_cast<double>(bytes)).c_str()) + remark + "\n";
  };
  const std::string whose = plan.mesh.size(Axis::kPp) == 1
                                ? "one rank"
                                : "pipeline rank " + std::to_string(run.memory.pp_rank) + ", the fullest";
  std::string text = "  memory   of " + whose + " at its peak\n";
  for (size_t c = 0; c < run.memory.at_peak.size(); ++c) {
    const int64_t bytes = run.memory.at_peak[c];
    if (bytes > 0) text += row(std::string(name(static_cast<MemoryCategory>(c))).c_str(), bytes, "");
  }
  const auto fraction =
      static_cast<double>(together(run.memory.at_peak)) / static_cast<double>(plan.profile.memory_bytes);
  text += row("together", together(run.memory.at_peak),
              strprintf("  %.3g %% of the profile's %s", 100 * fraction,
                        human_bytes(static_cast<double>(plan.profile.memory_bytes)).c_str()) +
                  style.dim(run.documents_known
                                ? strprintf("  estimate, within %.0f %% of the measured peak", 100 * kPeakTolerance) +
                                      tolerance_condition(plan)
                                : std::string("  estimate")));
  return plan.profile.kernels == nullptr ? text : text + on_gpu_text(run.on_gpu, plan);
}

// Short steps have the digits of the console's column; steps of minutes are not written in milliseconds.
std::string step_text(double nanoseconds) {
  return nanoseconds < 1e8 ? strprintf("%.3f ms", nanoseconds * 1e-6) : human_ns(nanoseconds);
}

std::string traffic_text(const DryRun& run, const RunPlan& plan, const Style& style) {
  if (!run.traffic.empty()) return traffic_table(run.traffic, style, "    ");
  return plan.config.diloco.enabled() ? "    but for outer updates a rank sends only a few numbers\n"
                                      : "    one rank sends nothing\n";
}

// "products 610 ms, attention 120 ms": the parts of compute time.
std::string kernels_text(const StepTime& time) {
  std::vector<std::string> parts;
  for (size_t kind = 0; kind < kKernelKindNames.size(); ++kind)
    if (time.kernel_ns[kind] > 0)
      parts.push_back(std::string(kKernelKindNames[kind]) + " " + human_ns(time.kernel_ns[kind]));
  if (time.launch_ns > 0)
    parts.push_back(strprintf("waiting for %.0f launches %s", time.launches, human_ns(time.launch_ns).c_str()));
  return join(parts, ", ");
}

std::string method_text(const RunPlan& plan) {
  if (plan.profile.kernels == nullptr)
    return "each kernel max(FLOPs / peak, bytes / bandwidth) + launch, each collective latency + bytes / link, "
           "overlap as the runtime issues them";
  return "kernels and collectives as measured on this GPU" +
         (plan.config.software == "ranklab" ? std::string() : ", of " + plan.config.software) +
         ", overlap as the runtime issues them";
}

std::string time_text(const DryRun& run, const RunPlan& plan, const Style& style) {
  std::string text = "  step     estimate";
  if (run.documents_known)
    text += strprintf(", within %.0f %%", 100 * step_time_tolerance(plan)) + tolerance_condition(plan);
  text += ": ";
  text += style.bold(step_text(run.time.total_ns) + " of virtual time");
  text += strprintf(" on %s, MFU %.1f%%\n", plan.profile.title.c_str(), 100 * run.mfu);
  if (plan.profile.kernels != nullptr) {
    const PlanBand band = plan_band(plan.config.software);
    text += strprintf("    in 90 %% of %s %s to %s (%.2f to %.2f times such a plan)\n",
                      plan_band_runs(plan.config.software).c_str(), human_ns(band.step_low * run.time.total_ns).c_str(),
                      human_ns(band.step_high * run.time.total_ns).c_str(), band.step_low, band.step_high);
  }
  text += strprintf("    compute      %10s  %s\n", human_ns(run.time.compute_ns).c_str(),
                    flop_text(run.time.flops).c_str());
  text += strprintf("    %-12s %10s  %s\n", "", "", kernels_text(run.time).c_str());
  if (run.time.pipeline_idle_ns > 0) {
    text += strprintf("    pipeline     %10s  idle, waiting for other stages (%.1f%% of the step)\n",
                      human_ns(run.time.pipeline_idle_ns).c_str(), 100 * run.time.pipeline_idle_ns / run.time.total_ns);
  }
  for (const auto& [axis, busy] : run.time.busy_ns) {
    const auto exposed = run.time.exposed_ns.find(axis);
    const double shown = exposed == run.time.exposed_ns.end() ? 0 : exposed->second;
    text += strprintf("    exposed %-4s %10s  of %s on the links\n", std::string(name(axis)).c_str(),
                      human_ns(shown).c_str(), human_ns(busy).c_str());
  }
  if (run.time.added.hidden_ns > 0)
    text += strprintf("    beside       %10s  extra time of compute that runs beside collectives\n",
                      human_ns(run.time.added.hidden_ns).c_str());
  if (run.time.added.pieces_ns > 0)
    text += strprintf("    pieces       %10s  ranks pass updated parameters to each other one by one\n",
                      human_ns(run.time.added.pieces_ns).c_str());
  if (run.time.added.slowest_ns > 0)
    text += strprintf("    slowest      %10s  waiting for the slowest of %d GPUs\n",
                      human_ns(run.time.added.slowest_ns).c_str(), plan.config.parallel.world);
  if (run.time.added.outer_update_ns > 0)
    text += strprintf("    outer update %10s  in the mean: %s every %s (DiLoCo)\n",
                      human_ns(run.time.added.outer_ns).c_str(), human_ns(run.time.added.outer_update_ns).c_str(),
                      counted(plan.config.diloco.interval(), "step").c_str());
  return text + style.dim("    how: " + method_text(plan)) + "\n";
}

nlohmann::ordered_json axis_traffic_json(const std::vector<AxisTraffic>& traffic) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const AxisTraffic& row : traffic) {
    rows.push_back({{"axis", name(row.axis)},
                    {"size", row.group_size},
                    {"calls_per_rank", row.per_rank.calls},
                    {"logical_bytes_per_rank", row.per_rank.logical_bytes},
                    {"sent_bytes_per_rank", row.per_rank.ring_bytes},
                    {"sent_bytes", row.total_bytes},
                    {"bytes_across_nodes", row.bytes_across_nodes}});
  }
  return rows;
}

template <typename ByAxis>
nlohmann::ordered_json exposed_json(const ByAxis& exposed_ns) {
  nlohmann::ordered_json exposed = nlohmann::ordered_json::object();
  for (const auto& [axis, nanoseconds] : exposed_ns) exposed[std::string(name(axis))] = nanoseconds * 1e-6;
  return exposed;
}

}  // namespace

std::string dry_run_text(const RunPlan& plan, const StepRecord& step, const Style& style,
                         const std::string& absent_data) {
  const TrainConfig& c = plan.config;
  const DryRun run = make_dry_run(plan, step, absent_data);
  std::string text;
  const ModelCounts counts = count_model(c.model, c.model.seq_length);
  text += style.bold(model_title(plan, counts.total + counts.mtp)) + "\n";
  text += "  made of  " + parts_text(c.model) + "\n";
  text += "  KV cache " + cache_text(plan) + "\n";
  text += strprintf("  world    %s on %s, %s\n", counted(c.parallel.world, "rank").c_str(), c.backend.c_str(),
                    plan.profile.title.c_str());
  text += "  mesh     " + layout_text(plan) +
          (plan.sequence_parallel && c.parallel.tp > 1 ? ", sequence parallel\n" : "\n");
  if (plan.schedule.num_stages() > 1) text += "  pipeline " + pipeline_text(plan) + "\n";
  text += strprintf(
      "  batch    %s = dp %d x %s of %ld; %s a step%s\n", counted(c.global_batch_size, "sequence").c_str(), plan.dp(),
      counted(plan.num_microbatches, "microbatch", "es").c_str(), static_cast<long>(plan.micro_batch_size),
      counted(plan.tokens_per_step(), "token").c_str(), ramp_text(plan).c_str());
  text += memory_text(run, plan, style);
  text += "  traffic  of one step\n";
  text += traffic_text(run, plan, style);
  text += time_text(run, plan, style);
  for (const std::string& warning : run.warnings) text += style.yellow("  warning  " + warning) + "\n";
  return text + "nothing was run\n";
}

std::string dry_run_json(const RunPlan& plan, const StepRecord& step, const std::string& absent_data) {
  const TrainConfig& c = plan.config;
  const DryRun run = make_dry_run(plan, step, absent_data);
  const ModelCounts counts = count_model(c.model, c.model.seq_length);
  nlohmann::ordered_json data = {{"preset", c.preset},
                                 {"parameters", counts.total},
                                 {"active_parameters", counts.active},
                                 {"mtp_parameters", counts.mtp},
                                 {"kv_cache_bytes_per_token", kv_cache_bytes_per_token(plan)},
                                 {"world_size", c.parallel.world},
                                 {"dp", plan.dp()},
                                 {"tp", c.parallel.tp},
                                 {"sequence_parallel", plan.sequence_parallel && c.parallel.tp > 1},
                                 {"microbatches", plan.num_microbatches},
                                 {"micro_batch_size", plan.micro_batch_size},
                                 {"tokens_per_step", plan.tokens_per_step()},
                                 {"hardware", plan.profile.name},
                                 {"efficiency", plan.profile.kernels ? "measured" : "datasheet"},
                                 {"software", c.software},
                                 {"memory_bytes", category_bytes_json(run.memory.at_peak)},
                                 {"gpu_memory_bytes", framework_memory_json(run.on_gpu)},
                                 {"traffic", axis_traffic_json(run.traffic)},
                                 {"estimate",
                                  {{"virtual_step_ms", run.time.total_ns * 1e-6},
                                   {"compute_ms", run.time.compute_ns * 1e-6},
                                   {"kernels_ms", kernels_json(run.time)},
                                   {"launch_wait_ms", run.time.launch_ns * 1e-6},
                                   {"pipeline_idle_ms", run.time.pipeline_idle_ns * 1e-6},
                                   {"beside_collectives_ms", run.time.added.hidden_ns * 1e-6},
                                   {"pieces_ms", run.time.added.pieces_ns * 1e-6},
                                   {"slowest_gpu_ms", run.time.added.slowest_ns * 1e-6},
                                   {"outer_update_ms", run.time.added.outer_ns * 1e-6},
                                   {"exposed_ms", exposed_json(run.time.exposed_ns)},
                                   {"mfu", run.mfu}}}};
  if (run.documents_known) {
    data["memory_tolerance"] = kPeakTolerance;
    data["estimate"]["tolerance"] = step_time_tolerance(plan);
  }
  if (plan.profile.kernels != nullptr) {
    const PlanBand band = plan_band(c.software);
    const auto [least, most] = band.on_device(run.on_gpu);
    data["in_90_percent_of_published_runs"] = {
        {"runs", plan_band_runs(c.software)},
        {"step_ms", {band.step_low * run.time.total_ns * 1e-6, band.step_high * run.time.total_ns * 1e-6}},
        {"gpu_memory_bytes", {least, most}}};
  }
  if (plan.schedule.num_stages() > 1) {
    data["pp"] = c.parallel.pp;
    data["pipeline"] = pipeline_json(plan);
  }
  return json_result(data, run.warnings);
}

}  // namespace ranklab
