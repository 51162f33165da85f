// ranklab train
#include <CLI/CLI.hpp>
#include <atomic>
#include <csignal>
#include <memory>

#include "cli/command.h"
#include "cli/config_options.h"
#include "cli/console.h"
#include "cli/dry_run.h"
#include "cli/gemm.h"
#include "cli/make_world.h"
#include "core/base/text.h"
#include "core/runtime/config_toml.h"
#include "core/runtime/engine.h"
#include "core/runtime/memory_check.h"
#include "core/runtime/run_log.h"
#include "core/runtime/tensorboard.h"
#include "core/sim/memory_scope.h"

namespace ranklab {
namespace {

std::atomic<bool> g_stop{false};

// The first Ctrl-C finishes the step; the second ends the process.
void on_interrupt(int) {
  g_stop = true;
  std::signal(SIGINT, SIG_DFL);
}

// On GPUs the world is as large as the launcher made it (torchrun's environment, or one process), and tp is what was
// asked for.
void adopt_world(TrainConfig& config, const World& world, const ConfigOptions& options) {
  if (!options.given("parallel.world_size")) config.parallel.world = world.size();
  if (!options.given("parallel.tp")) config.parallel.tp = 1;
}

// Large models take seconds to minutes to fill before the first line of the run.
void say_long_start(const RunPlan& plan) {
  const double weights = static_cast<double>(plan.config.model.parameter_count()) * plan.dp();
  if (plan.config.backend != "cpu_sim" || weights < 5e7) return;
  std::fprintf(stderr, "making %s weights (%s parameters x %d replicas) ...\n", human_count(weights).c_str(),
               human_count(static_cast<double>(plan.config.model.parameter_count())).c_str(), plan.dp());
}

// The settings as a file that gives this run again. On GPUs the launcher makes the world: what it decides stays open.
int print_config(const ConfigOptions& options) {
  const TrainConfig config = options.config();
  std::vector<std::string> open;
  if (config.backend != "cuda") resolve(config);
  for (const char* key : {"parallel.world_size", "parallel.tp"}) {
    if (config.backend == "cuda" && !options.given(key)) open.emplace_back(key);
  }
  std::printf("%s", config_toml(config, {}, open).c_str());
  return 0;
}

int dry_run(const ConfigOptions& options) {
  TrainConfig config = options.config();
  if (config.backend == "cuda" && !options.given("parallel.tp")) config.parallel.tp = 1;
  std::printf("%s", dry_run_report(resolve(config)).c_str());
  return 0;
}

int train(const ConfigOptions& options) {
  TrainConfig config = options.config();
  std::shared_ptr<World> world;
  if (config.backend == "cuda") {
    world = make_world(config);
    adopt_world(config, *world, options);
  }
  const RunPlan plan = resolve(config);
  if (!world) {
    check_memory(plan);
    world = make_world(plan.config);
  }
  install_booking_allocator();
  const std::string gemm = choose_gemm(plan);
  const std::string log_dir = config.log_dir.empty() ? default_log_dir() : config.log_dir;
  RuntimeEngine engine(default_components(std::move(world), plan), plan);
  engine.add_hook(make_run_log_hook(log_dir));
  if (config.trace) engine.add_hook(make_trace_file_hook(log_dir, plan));
  if (!config.tensorboard_dir.empty()) engine.add_hook(make_tensorboard_hook(config.tensorboard_dir));
  engine.add_hook(make_console_hook({.log_interval = config.log_interval,
                                     .gemm = gemm,
                                     .log_dir = log_dir,
                                     .trace_path = config.trace ? trace_path(log_dir) : ""}));
  say_long_start(plan);
  std::signal(SIGINT, on_interrupt);
  engine.set_stop_request([] { return g_stop.load(); });
  const TrainResult result = engine.fit();
  return result.interrupted ? 130 : 0;
}

}  // namespace

CommandAction setup_train(CLI::App& app) {
  app.footer("Examples:\n  ranklab train\n  ranklab train --tp 8 --train-iters 20 --mock-data --log-dir runs/tp8");
  auto options = std::make_shared<ConfigOptions>(app);
  struct Instead {
    bool print_config = false, dry_run = false;
  };
  auto instead = std::make_shared<Instead>();
  app.add_flag("--print-config", instead->print_config, "print the settings as TOML for --config, and stop");
  app.add_flag("-n,--dry-run", instead->dry_run, "print layout, batch and memory of a rank, and stop");
  return [options, instead] {
    if (instead->print_config) return print_config(*options);
    return instead->dry_run ? dry_run(*options) : train(*options);
  };
}

}  // namespace ranklab
