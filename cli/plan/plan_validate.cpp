#include "cli/plan/plan_validate.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "cli/common/json_output.h"
#include "cli/common/kernels_json.h"
#include "cli/common/memory_json.h"
#include "cli/training_module.h"
#include "core/base/error.h"
#include "core/base/shell_quote.h"
#include "core/base/text.h"
#include "core/plan/measured/framework_memory.h"
#include "core/plan/measured/layout_sweeps.h"
#include "core/plan/measured/measured_runs.h"
#include "core/plan/measured/plan_band.h"
#include "core/plan/step_time.h"

namespace ranklab {
namespace {

struct Prediction {
  std::string software;
  double step_s = 0;
  double mfu = 0;
  StepTime time = {};
  bool launch_blocking = false;
  FrameworkMemory memory = {}, last_stage = {};
};

struct Compared {
  MeasuredRun run;
  std::optional<Prediction> predicted;  // none: run.left_out says why
  std::string reason = {};              // if the plan is rejected: what is wrong, without this row's values

  // The predicted time divided by the measured one.
  std::optional<double> time_ratio() const {
    if (!predicted) return std::nullopt;
    if (run.measured.step_s) return predicted->step_s / *run.measured.step_s;
    if (run.measured.mfu) return *run.measured.mfu / predicted->mfu;
    return std::nullopt;
  }
  std::optional<double> memory_ratio() const {
    if (!predicted) return std::nullopt;
    if (run.measured.peak_bytes) return predicted_peak() / *run.measured.peak_bytes;
    if (run.measured.last_stage_peak_bytes) return predicted_peak() / *run.measured.last_stage_peak_bytes;
    return std::nullopt;
  }
  std::optional<double> static_ratio() const {
    if (!predicted || !run.measured.static_bytes) return std::nullopt;
    return predicted->last_stage.at_rest() / *run.measured.static_bytes;
  }
  // The predicted bytes of what the row measured: tensors alone on the last stage, or everything that PyTorch holds on
  // the fullest GPU (or on the first stage's).
  double predicted_peak() const {
    if (run.measured.last_stage_peak_bytes) return predicted->last_stage.allocated();
    if (run.measured.on_device) return predicted->memory.on_device();
    return run.measured.reserved ? predicted->memory.reserved() : predicted->memory.allocated();
  }
};

Prediction predict(const MeasuredRun& run) {
  TrainConfig defaults;
  defaults.mock_data = true;
  const MergedConfig merged = merge_config(defaults, run.settings);
  const RunPlan plan = resolve(merged.config, merged.origins);
  const StepRecord record = training_functions().record_step(plan);
  Prediction out;
  out.software = plan.config.software;
  out.time = time_of(record);
  out.launch_blocking = plan.profile.software.terms.launch_blocking;
  out.step_s = out.time.total_ns * 1e-9;
  out.mfu = mfu(plan, out.time.total_ns);
  out.memory =
      run.measured.first_stage ? framework_memory(plan, record.of_pipeline_rank(0)) : framework_memory(plan, record);
  out.last_stage = framework_memory(plan, record.of_pipeline_rank(plan.mesh.size(Axis::kPp) - 1));
  return out;
}

Compared compare(MeasuredRun run) {
  Compared out{.run = std::move(run), .predicted = std::nullopt};
  if (!out.run.left_out.empty()) return out;
  try {
    out.predicted = predict(out.run);
  } catch (const Error& error) {
    out.run.left_out = error.what();
    out.reason = error.text().what;
  }
  return out;
}

std::string flags_of(const MeasuredRun& run) {
  std::string text = "ranklab plan run";
  for (const ConfigSetting& setting : run.settings) text += " --set " + shell_word(setting.key + "=" + setting.text);
  return text;
}

// The mean of the two middle values if their number is even, because groups are small (core/base/numbers/median.h takes
// the upper one).
double middle(std::vector<double> values) {
  std::ranges::sort(values);
  const size_t n = values.size();
  return n == 0 ? 0 : n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

// Kendall's tau of predicted and measured step times within each source: the pairs in the same order minus the other
// pairs.
double ordering(const std::vector<const Compared*>& rows) {
  int same = 0, other = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    for (size_t j = i + 1; j < rows.size(); ++j) {
      const Compared &a = *rows[i], &b = *rows[j];
      if (a.run.source != b.run.source || !a.run.measured.step_s || !b.run.measured.step_s) continue;
      const double order =
          (a.predicted->step_s - b.predicted->step_s) * (*a.run.measured.step_s - *b.run.measured.step_s);
      (order > 0 ? same : other) += order != 0 ? 1 : 0;
    }
  }
  return same + other == 0 ? 1 : static_cast<double>(same - other) / (same + other);
}

struct Summary {
  size_t rows = 0;
  double mean_error = 0, median_ratio = 0, tau = 0;
  size_t memory_rows = 0;
  double memory_error = 0, memory_ratio = 0;
};

Summary summary_of(const std::vector<const Compared*>& rows) {
  Summary out;
  std::vector<double> ratios, memory;
  std::vector<const Compared*> timed;
  for (const Compared* row : rows) {
    if (const auto ratio = row->time_ratio()) {
      ratios.push_back(*ratio);
      timed.push_back(row);
      out.mean_error += std::abs(*ratio - 1);
    }
    if (const auto ratio = row->memory_ratio()) {
      memory.push_back(*ratio);
      out.memory_error += std::abs(*ratio - 1);
    }
  }
  out.rows = ratios.size();
  out.memory_rows = memory.size();
  if (!ratios.empty()) out.mean_error /= static_cast<double>(ratios.size());
  if (!memory.empty()) out.memory_error /= static_cast<double>(memory.size());
  out.median_ratio = middle(ratios);
  out.memory_ratio = middle(memory);
  out.tau = ordering(timed);
  return out;
}

std::string row_text(const Compared& row) {
  const MeasuredRun& run = row.run;
  if (!row.predicted) return strprintf("%-44s left out: %s\n", run.id.c_str(), run.left_out.c_str());
  std::string text = strprintf("%-44s %-9s", run.id.c_str(), run.gpu.c_str());
  const auto ratio = row.time_ratio();
  text += run.measured.step_s ? strprintf(" %9.3f %9.3f", *run.measured.step_s, row.predicted->step_s)
          : run.measured.mfu ? strprintf("  MFU %4.1f%%     %4.1f%%", 100 * *run.measured.mfu, 100 * row.predicted->mfu)
                             : strprintf(" %9s %9.3f", "", row.predicted->step_s);
  text += ratio ? strprintf(" %+6.1f%%", 100 * (*ratio - 1)) : strprintf(" %7s", "");
  if (const auto memory = row.memory_ratio())
    text += strprintf("  memory %6.1f %6.1f GB %+6.1f%%", row.predicted_peak() / *memory * 1e-9,
                      row.predicted_peak() * 1e-9, 100 * (*memory - 1));
  if (const auto at_rest = row.static_ratio())
    text += strprintf("  at rest %6.2f %6.2f GB %+6.1f%%", *run.measured.static_bytes * 1e-9,
                      row.predicted->last_stage.at_rest() * 1e-9, 100 * (*at_rest - 1));
  return text + "\n";
}

std::string summary_text(const std::string& what, const Summary& s) {
  std::string text =
      strprintf("%-44s %5zu %8.1f%% %8.2f %6.2f", what.c_str(), s.rows, 100 * s.mean_error, s.median_ratio, s.tau);
  if (s.memory_rows > 0)
    text += strprintf("   %5zu %8.1f%% %8.2f", s.memory_rows, 100 * s.memory_error, s.memory_ratio);
  return text + "\n";
}

nlohmann::ordered_json row_json(const Compared& row) {
  nlohmann::ordered_json json = {{"id", row.run.id}, {"source", row.run.source}, {"profile", row.run.gpu}};
  if (!row.predicted) {
    json["left_out"] = row.run.left_out;
    return json;
  }
  json["software"] = row.predicted->software;
  json["predicted_step_s"] = row.predicted->step_s;
  json["predicted_mfu"] = row.predicted->mfu;
  const StepTime& time = row.predicted->time;
  json["kernels_ms"] = kernels_json(time);
  json["launch_wait_ms"] = time.launch_ns * 1e-6;
  json["launches"] = time.launches;
  if (row.predicted->launch_blocking) json["launch_blocking"] = true;
  json["exposed_ms"] = time.exposed_total_ns() * 1e-6;
  json["pipeline_idle_ms"] = time.pipeline_idle_ns * 1e-6;
  json["beside_collectives_ms"] = time.added.hidden_ns * 1e-6;
  json["pieces_ms"] = time.added.pieces_ns * 1e-6;
  json["slowest_gpu_ms"] = time.added.slowest_ns * 1e-6;
  json["outer_update_ms"] = time.added.outer_ns * 1e-6;
  for (const auto& [axis, busy] : time.busy_ns) json["links_ms"][std::string(name(axis))] = busy * 1e-6;
  json["predicted_peak_bytes"] = row.predicted_peak();
  json["predicted_memory"] = framework_memory_json(row.predicted->memory);
  json["predicted_last_stage"] = framework_memory_json(row.predicted->last_stage);
  if (row.run.measured.step_s) json["measured_step_s"] = *row.run.measured.step_s;
  if (row.run.measured.mfu) json["measured_mfu"] = *row.run.measured.mfu;
  if (row.run.measured.static_bytes) json["measured_static_bytes"] = *row.run.measured.static_bytes;
  if (row.run.measured.last_stage_peak_bytes)
    json["measured_last_stage_peak_bytes"] = *row.run.measured.last_stage_peak_bytes;
  if (row.run.measured.peak_bytes) json["measured_peak_bytes"] = *row.run.measured.peak_bytes;
  if (const auto ratio = row.time_ratio()) json["time_ratio"] = *ratio;
  if (const auto ratio = row.memory_ratio()) json["memory_ratio"] = *ratio;
  if (const auto ratio = row.static_ratio()) json["static_ratio"] = *ratio;
  return json;
}

// How often the range that holds 90 % of published runs contains the measured value.
struct Held {
  int times = 0, of_times = 0, memory = 0, of_memory = 0;
};
Held held_of(const std::vector<const Compared*>& rows) {
  Held held;
  for (const Compared* row : rows) {
    const PlanBand band = plan_band(row->predicted->software);
    const auto holds = [](double predicted_over_measured, double low, double high) {
      return 1 / predicted_over_measured >= low && 1 / predicted_over_measured <= high;
    };
    if (const auto ratio = row->time_ratio()) {
      ++held.of_times;
      held.times += holds(*ratio, band.step_low, band.step_high) ? 1 : 0;
    }
    if (const auto ratio = row->memory_ratio()) {
      ++held.of_memory;
      held.memory += holds(*ratio, band.memory_low, band.memory_high) ? 1 : 0;
    }
  }
  return held;
}

// Groups of rows that differ only in their layout: what a search among them would find.
std::vector<LayoutSweep> sweeps_of(const std::vector<Compared>& rows) {
  std::vector<TimedRun> timed;
  for (const Compared& row : rows)
    if (row.predicted && row.run.measured.step_s) timed.push_back({&row.run, row.predicted->step_s});
  return layout_sweeps(timed);
}

void print_sweeps(const std::vector<LayoutSweep>& sweeps) {
  if (sweeps.empty()) return;
  std::printf("\nthe fastest layout by plan is within %.0f %% of the fastest measured in %td of %zu sweeps\n",
              100 * kAboutAsFast, std::ranges::count_if(sweeps, &LayoutSweep::right), sweeps.size());
  for (const LayoutSweep& sweep : sweeps)
    if (!sweep.right())
      std::printf("  not in %s: %s took %.3f s, %s %.3f s\n", sweep.what.c_str(), sweep.chosen.c_str(), sweep.chosen_s,
                  sweep.fastest.c_str(), sweep.fastest_s);
}

nlohmann::ordered_json sweeps_json(const std::vector<LayoutSweep>& sweeps) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const LayoutSweep& sweep : sweeps)
    all.push_back({{"sweep", sweep.what},
                   {"layouts", sweep.layouts},
                   {"chosen", sweep.chosen},
                   {"chosen_measured_s", sweep.chosen_s},
                   {"fastest", sweep.fastest},
                   {"fastest_measured_s", sweep.fastest_s},
                   {"right", sweep.right()}});
  return all;
}

// Prints how many rows are left out, and how many for each reason, the most frequent first.
void print_left_out(const std::vector<Compared>& rows) {
  std::map<std::string, size_t> by_reason;
  for (const Compared& row : rows)
    if (!row.predicted) ++by_reason[row.reason.empty() ? row.run.left_out : row.reason];
  std::vector<std::pair<std::string, size_t>> reasons(by_reason.begin(), by_reason.end());
  std::ranges::stable_sort(reasons, std::greater(), &std::pair<std::string, size_t>::second);
  size_t all = 0;
  for (const auto& [reason, count] : reasons) all += count;
  std::printf("\nleft out: %zu of %zu rows\n", all, rows.size());
  for (const auto& [reason, count] : reasons) std::printf("%6zu  %s\n", count, reason.c_str());
}

using ComparedBy = std::map<std::string, std::vector<const Compared*>>;

void print_summaries(const ComparedBy& by_gpu, const ComparedBy& by_source, const std::vector<const Compared*>& all) {
  std::printf("\n%-44s %5s %9s %8s %6s   %5s %9s %8s\n", "step times", "rows", "mean err", "median", "tau", "mem",
              "mean err", "median");
  for (const ComparedBy* group : {&by_gpu, &by_source})
    for (const auto& [what, rows] : *group) std::fputs(summary_text(what, summary_of(rows)).c_str(), stdout);
  std::fputs(summary_text("all", summary_of(all)).c_str(), stdout);
  const Held held = held_of(all);
  std::printf("\nin the range that plans state for 90 %% of runs: %d of %d step times, %d of %d peaks of memory\n",
              held.times, held.of_times, held.memory, held.of_memory);
}

bool wanted(const MeasuredRun& run, const std::string& only) {
  return only.empty() || run.id.find(only) != std::string::npos || run.source.find(only) != std::string::npos ||
         run.gpu == only;
}

}  // namespace

int run_plan_validate(const ValidateRequest& request) {
  std::vector<MeasuredRun> runs = read_measured_runs(request.file);
  std::erase_if(runs, [&](const MeasuredRun& run) { return !wanted(run, request.only); });
  RANKLAB_CHECK(!runs.empty(), ErrorKind::kInvalidArgument, .where = "flag --only", .what = "no row is chosen",
                .got = quote(request.only), .want = "part of a row's id or source, or a hardware profile's name",
                .fix = "leave it out to see the rows of " + request.file);
  std::vector<Compared> rows;
  if (!request.json) std::printf("%-44s %-9s %9s %9s %7s\n", "row", "profile", "measured", "predicted", "error");
  for (MeasuredRun& run : runs) {
    rows.push_back(compare(std::move(run)));
    if (request.json) continue;
    std::fputs(row_text(rows.back()).c_str(), stdout);
    if (request.flags) std::printf("  %s\n", flags_of(rows.back().run).c_str());
    std::fflush(stdout);
  }
  if (request.json) {
    nlohmann::ordered_json all = nlohmann::ordered_json::array();
    for (const Compared& row : rows) all.push_back(row_json(row));
    std::fputs(json_result({{"rows", all}, {"sweeps", sweeps_json(sweeps_of(rows))}}).c_str(), stdout);
    return 0;
  }
  ComparedBy by_gpu, by_source;
  std::vector<const Compared*> all;
  for (const Compared& row : rows) {
    if (!row.predicted) continue;
    by_gpu[row.run.gpu].push_back(&row);
    by_source[row.run.source].push_back(&row);
    all.push_back(&row);
  }
  print_summaries(by_gpu, by_source, all);
  print_sweeps(sweeps_of(rows));
  print_left_out(rows);
  return 0;
}

}  // namespace ranklab
