// ranklab train
#include <CLI/CLI.hpp>
#include <memory>

#include "cli/command.h"
#include "cli/config_options.h"
#include "cli/console.h"
#include "cli/dry_run.h"
#include "cli/gemm.h"
#include "cli/interrupt.h"
#include "cli/json_hook.h"
#include "cli/make_world.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/runtime/config_toml.h"
#include "core/runtime/engine.h"
#include "core/runtime/memory_check.h"
#include "core/runtime/run_log.h"
#include "core/runtime/tensorboard.h"
#include "core/sim/memory_scope.h"

namespace ranklab {
namespace {

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
  if (config.backend != "cuda") options.resolve(config);
  if (config.backend == "cuda" && !options.given("parallel.world_size")) open.emplace_back("parallel.world_size");
  std::printf("%s", config_toml(config, {}, open).c_str());
  return 0;
}

int dry_run(const ConfigOptions& options, bool json) {
  const RunPlan plan = options.resolve(options.config());
  std::printf("%s", (json ? dry_run_json(plan) : dry_run_text(plan, style_for(stdout))).c_str());
  return 0;
}

// In the process of rank 0: what the user sees, and the files.
void add_hooks(RuntimeEngine& engine, const std::string& gemm, bool json) {
  const TrainConfig& config = engine.plan().config;
  const std::string log_dir = config.log_dir.empty() ? default_log_dir() : config.log_dir;
  engine.add_hook(make_run_log_hook(log_dir));
  if (config.trace) engine.add_hook(make_trace_file_hook(log_dir, engine.plan()));
  if (!config.tensorboard_dir.empty()) engine.add_hook(make_tensorboard_hook(config.tensorboard_dir));
  const ConsoleOptions console{.log_interval = config.log_interval,
                               .gemm = gemm,
                               .log_dir = log_dir,
                               .trace_path = config.trace ? trace_path(log_dir) : "",
                               .out = json ? stderr : stdout};
  engine.add_hook(make_console_hook(console));
  if (json) engine.add_hook(make_json_hook(console));
  say_long_start(engine.plan());
}

int run_in(const std::shared_ptr<World>& world, const RunPlan& plan, bool json) {
  const std::string gemm = choose_gemm(plan, *world);
  RuntimeEngine engine(default_components(world, plan), plan);
  engine.set_stop_request(interrupt_asked);
  if (world->has_rank_zero()) add_hooks(engine, gemm, json);
  return engine.fit().interrupted ? interrupt_exit_code() : 0;
}

int train(const ConfigOptions& options, bool json) {
  TrainConfig config = options.config();
  watch_interrupts();
  std::shared_ptr<World> world;
  const ProcessEnv env = read_process_env();
  if (config.backend == "cuda") world = make_world(config);
  if (world || env.world_size > 1) adopt_world(config, world ? world->size() : env.world_size, options);
  // A world of one that torchrun made is meant; one task of a cluster job runs as many threads as anyone.
  const bool one_asked = env.world_size == 1 && env.launcher == Launcher::kTorchrun;
  if (!world && one_asked && !options.given("parallel.world_size")) adopt_world(config, 1, options);
  const RunPlan plan = options.resolve(config);
  if (!world) {
    if (env.world_size == 1 || (env.rank == 0 && env.one_host())) check_memory(plan);
    world = make_world(plan.config, env);
  }
  install_booking_allocator();
  try {
    return run_in(world, plan, json);
  } catch (const Error& error) {
    // Peers that the same Ctrl-C ended are no news, and an error that rank 0 shows is shown once.
    if (interrupt_asked()) {
      if (json && world->has_rank_zero()) std::fputs(json_interrupted().c_str(), stdout);
      return interrupt_exit_code();
    }
    if (world->error_is_shown_elsewhere()) return exit_code(error.kind());
    throw;
  }
}

}  // namespace

CommandAction setup_train(CLI::App& app) {
  app.footer("Examples:\n  ranklab train\n  ranklab train --tp 8 --train-iters 20 --mock-data --log-dir runs/tp8");
  auto options = std::make_shared<ConfigOptions>(app);
  struct Instead {
    bool print_config = false, dry_run = false, json = false;
  };
  auto instead = std::make_shared<Instead>();
  app.add_flag("--print-config", instead->print_config, "print the settings as TOML for --config, and stop");
  app.add_flag("-n,--dry-run", instead->dry_run, "print layout, memory, traffic and estimated step time, and stop");
  app.add_flag("--json", instead->json, "stdout: one JSON object per logged step, then one of the result");
  return [options, instead] {
    if (instead->print_config) return print_config(*options);
    return instead->dry_run ? dry_run(*options, instead->json) : train(*options, instead->json);
  };
}

}  // namespace ranklab
