#include "cli/bench/bench_overhead.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <vector>

#include "cli/bench/bench_collectives.h"
#include "cli/bench/bench_step.h"
#include "cli/common/json_output.h"
#include "cli/world/make_world.h"
#include "core/base/numbers/median.h"
#include "core/runtime/engine.h"

namespace ranklab {
namespace {

struct TimedLayout {
  const char* name;
  int tp;
};
constexpr std::array<TimedLayout, 3> kTimedLayouts = {{{"dp 8", 1}, {"dp 4 x tp 2, sp", 2}, {"tp 8, sp", 8}}};

TrainConfig config_for(const TimedLayout& layout, bool observed) {
  TrainConfig config;
  config.parallel = {.world = 8, .tp = layout.tp};
  config.gemm = "mkl";
  config.virtual_time = observed;
  config.trace = observed;
  config.trace_step_end = 1 << 30;
  return config;
}

// The number of collectives that one rank posts in one step.
double calls_per_step(const TimedLayout& layout) {
  TrainConfig config = config_for(layout, true);
  config.train_iters = 2;
  config.mock_data = true;
  config.eval_interval = 0;
  config.sample_tokens = 0;
  const RunPlan plan = resolve(config);
  RuntimeEngine engine(default_components(make_world(plan.config), plan), plan);
  const TrainResult result = engine.fit();
  const auto& events = result.traces[0].events;
  const auto calls = std::count_if(events.begin(), events.end(),
                                   [](const Event& e) { return e.kind == EventKind::kCollective && e.step == 1; });
  return static_cast<double>(calls) + 1;  // the engine's own exchange of metrics is not traced
}

struct Times {
  std::vector<double> wall, cpu;
  void add(const StepBenchResult& run) {
    wall.push_back(run.step_ms);
    cpu.push_back(run.cpu_ms);
  }
};

double percent_more(const std::vector<double>& on, const std::vector<double>& off) {
  return 100 * (median(on) / median(off) - 1);
}

// CPU milliseconds per step of runs that alternate without and with what is measured.
struct Alternating {
  std::vector<double> off, on;

  Alternating(int repetitions, const TrainConfig& without, const TrainConfig& with, int warmup, int steps) {
    for (int i = 0; i < repetitions; ++i) {
      off.push_back(run_step_bench(without, warmup, steps, 0).cpu_ms);
      on.push_back(run_step_bench(with, warmup, steps, 0).cpu_ms);
    }
  }
};

// Statistics of quantized tensors are computed in one of ten steps (and more often in the first ten, which the warm-up
// leaves out), so the mean is informative, and the median is not.
nlohmann::ordered_json precision_statistics(const BenchOverheadOptions& options) {
  constexpr int kWarmup = 10, kSteps = 20;
  TrainConfig with = config_for(kTimedLayouts[0], true);
  with.precision.recipe = "mxfp8";
  TrainConfig without = with;
  without.precision.stats_interval = 0;
  const auto [off, on] = Alternating(options.repetitions, without, with, kWarmup, kSteps);
  if (options.json)
    return {
        {"layout", kTimedLayouts[0].name}, {"recipe", "mxfp8"}, {"off_cpu_ms", median(off)}, {"on_cpu_ms", median(on)}};
  std::printf(
      "statistics of quantized tensors (%s, mxfp8, means of %d steps): %.2f CPU ms/step without, %.2f with, %+.1f%%\n",
      kTimedLayouts[0].name, kSteps, median(off), median(on), percent_more(on, off));
  return {};
}

void print_overhead_head(const BenchOverheadOptions& options) {
  std::printf("gpt_tiny on 8 rank threads; medians of %d alternating runs of %d steps\n", options.repetitions,
              options.steps);
  std::printf("%-18s %12s %12s %10s %14s %14s %10s   %s\n", "layout", "off ms/step", "on ms/step", "tracer",
              "off CPU ms/step", "on CPU ms/step", "tracer", "watch");
}

// The mean over all steps includes sentinels that check only some steps: tensors in one of ten steps, the probe in one
// of twenty.
nlohmann::ordered_json sentinel_cost(const BenchOverheadOptions& options) {
  constexpr int kWarmup = 1, kSteps = 20;
  const TimedLayout& layout = kTimedLayouts[0];
  TrainConfig with = config_for(layout, true);
  with.sentinels.mode = SentinelMode::kStandard;
  const auto [off, on] = Alternating(options.repetitions, config_for(layout, true), with, kWarmup, kSteps);
  if (options.json) return {{"layout", layout.name}, {"off_cpu_ms", median(off)}, {"on_cpu_ms", median(on)}};
  std::printf(
      "sentinels, --sentinel-mode standard (%s, means of %d steps): %.2f CPU ms/step without, %.2f with, %+.1f%%\n",
      layout.name, kSteps, median(off), median(on), percent_more(on, off));
  return {};
}

// Watches all steps. The additional time of a watched step is divided by the number of steps between two watched ones;
// this also divides noise from other programs.
nlohmann::ordered_json watch_cost(const BenchOverheadOptions& options) {
  constexpr int kWarmup = 2, kInterval = 50;
  const TimedLayout& layout = kTimedLayouts[1];
  TrainConfig with = config_for(layout, true);
  with.sentinels.parity_interval = 1;
  const auto [off, on] = Alternating(options.repetitions, config_for(layout, true), with, kWarmup, options.steps);
  const double percent = percent_more(on, off) / kInterval;
  if (options.json)
    return {{"layout", layout.name},
            {"interval", kInterval},
            {"off_cpu_ms", median(off)},
            {"watched_cpu_ms", median(on)},
            {"percent", percent}};
  std::printf(
      "parity, --watch %d (%s, means of %d steps): %.2f CPU ms/step, %.2f in a watched one, %+.2f%% at one of %d\n",
      kInterval, layout.name, options.steps, median(off), median(on), percent, kInterval);
  return {};
}

nlohmann::ordered_json layout_costs(const BenchOverheadOptions& options) {
  const double post_us = measure_post_us(8);
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  if (!options.json) print_overhead_head(options);
  for (const TimedLayout& layout : kTimedLayouts) {
    Times off, on;
    for (int i = 0; i < options.repetitions; ++i) {
      off.add(run_step_bench(config_for(layout, false), 2, options.steps, 0));
      on.add(run_step_bench(config_for(layout, true), 2, options.steps, 0));
    }
    const double calls = calls_per_step(layout);
    rows.push_back({{"layout", layout.name},
                    {"off_ms", median(off.wall)},
                    {"on_ms", median(on.wall)},
                    {"off_cpu_ms", median(off.cpu)},
                    {"on_cpu_ms", median(on.cpu)},
                    {"calls_per_step", calls},
                    {"watch_us_per_call", post_us}});
    if (options.json) continue;
    // Ranks post concurrently on as many cores as there are; a rank's own time is an upper bound for the step.
    std::printf("%-18s %12.2f %12.2f %+9.1f%% %14.2f %14.2f %+9.1f%%   %.0f calls x %.2f us = %.2f%%\n", layout.name,
                median(off.wall), median(on.wall), percent_more(on.wall, off.wall), median(off.cpu), median(on.cpu),
                percent_more(on.cpu, off.cpu), calls, post_us, 100 * calls * post_us * 1e-3 / median(off.wall));
  }
  return rows;
}

}  // namespace

int run_bench_overhead(const BenchOverheadOptions& options) {
  constexpr std::array kParts = {layout_costs, precision_statistics, sentinel_cost, watch_cost};
  static_assert(kParts.size() == kOverheadParts.size());
  nlohmann::ordered_json data;
  for (size_t i = 0; i < kParts.size(); ++i)
    if (options.only.empty() || options.only == kOverheadParts[i]) data[kOverheadParts[i]] = kParts[i](options);
  if (options.json) std::fputs(json_result(data).c_str(), stdout);
  return 0;
}

}  // namespace ranklab
