// `ranklab train`
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/common/command.h"
#include "cli/common/command_line.h"
#include "cli/common/json_output.h"
#include "cli/common/style.h"
#include "cli/config/config_options.h"
#include "cli/config/settings_json.h"
#include "cli/train/auto_layout.h"
#include "cli/train/dry_run.h"
#include "cli/training_module.h"
#include "cli/world/adopt_world.h"
#include "core/base/error.h"
#include "core/config/dump_choice.h"
#include "core/config/settings/toml.h"

namespace ranklab {
namespace {

// The settings as a file that reproduces this run. On GPUs the launcher determines the world, so what it decided is
// omitted.
int print_config(const ConfigOptions& options, bool json) {
  const TrainConfig config = options.config();
  std::vector<std::string> open;
  if (config.can(Capability::kMakesRanks)) check_reached(options.resolve(config));
  if (!config.can(Capability::kMakesRanks) && !options.given("parallel.world_size"))
    open.emplace_back("parallel.world_size");
  nlohmann::ordered_json data = settings_json(config);
  for (const std::string& key : open) data.erase(key);
  std::printf("%s", json ? json_result(data).c_str() : config_toml(config, {}, open).c_str());
  return 0;
}

// What is wrong with the data that are named, if they may still be there where the run will be: GPUs that a launcher
// starts processes on are seldom those of the machine that plans for them.
std::string absent_data(const RunPlan& plan) {
  try {
    training_functions().check_data(plan);
    return "";
  } catch (const Error& error) {
    if (plan.config.can(Capability::kMakesRanks) || error.kind() != ErrorKind::kIo) throw;
    return error.what();
  }
}

int dry_run(const ConfigOptions& options, bool json) {
  const RunPlan plan = options.resolve(options.config());
  check_reached(plan);
  const std::string absent = absent_data(plan);
  options.report_idle(plan);
  if (plan.config.check_gradient_types) training_functions().check_types(plan);
  const StepRecord step = training_functions().record_step(plan);
  const std::string text =
      json ? dry_run_json(plan, step, absent) : dry_run_text(plan, step, style_for(stdout), absent);
  std::printf("%s", text.c_str());
  return 0;
}

}  // namespace

CommandAction setup_train(CommandLine& app) {
  app.footer("Examples:\n  ranklab train\n  ranklab train --tp 8 --train-iters 20 --mock-data --log-dir runs/tp8");
  auto options = std::make_shared<ConfigOptions>(app);
  struct TrainFlags {
    bool print_config = false, dry_run = false;
    std::string layout;
    TrainRequest train;
  };
  auto flags = std::make_shared<TrainFlags>();
  app.add_flag("--print-config", flags->print_config, "print the settings as TOML for --config, without training");
  app.add_flag("-n,--dry-run", flags->dry_run,
               "print layout, memory, traffic and estimated step time, without training");
  app.add_option("--layout", flags->layout,
                 "auto: choose tp, pp, cp, ep, ZeRO stage, microbatch size, schedule and recomputation, where not "
                 "given, by the fastest plan on --hardware")
      ->one_of({"auto"});
  add_live_options(app, flags->train.live);
  app.add_flag("--json", flags->train.json, "print one JSON object per logged step to stdout, then one of the result");
  return [options, flags] {
    RANKLAB_CHECK(!flags->train.live.start_paused || flags->train.live.any(), ErrorKind::kInvalidArgument,
                  .where = "--viz-paused", .what = "ranks would wait for a viewer, and none can attach",
                  .got = "--viz-paused alone", .want = "--viz or --viz-listen with it",
                  .fix = "add --viz-listen, or leave it out");
    if (!flags->layout.empty()) {
      const std::string chosen = choose_layout(*options);
      const bool leads = read_process_env().rank == 0, data_only = flags->train.json || flags->print_config;
      if (leads) std::fprintf(data_only ? stderr : stdout, "%s\n", chosen.c_str());
    }
    if (flags->print_config) return print_config(*options, flags->train.json);
    if (flags->dry_run) return dry_run(*options, flags->train.json);
    if (options->config().can(Capability::kMakesRanks))  // rejected before LibTorch is loaded
      check_reached(options->resolve(launched_config(*options, read_process_env())));
    return training_functions().train(*options, flags->train);
  };
}

}  // namespace ranklab
