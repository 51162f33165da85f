// ranklab plan memory: the memory of every rank, computed from the configuration alone, and with --measure compared
// with what two training steps really used.
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/common/command.h"
#include "cli/common/command_line.h"
#include "cli/common/json_output.h"
#include "cli/common/style.h"
#include "cli/config/config_options.h"
#include "cli/plan/plan_memory.h"
#include "cli/world/make_world.h"
#include "core/base/error.h"
#include "core/config/requirements.h"
#include "core/runtime/memory_check.h"
#include "core/sim/memory_scope.h"

namespace ranklab {
namespace {

std::vector<MeasuredMemory> measure(RunPlan plan) {
  check_command(plan.config, Capability::kMeasuredRanks, "plan memory");
  check_memory(plan, memory_of_ranks(plan.config));
  install_booking_allocator();
  plan.config.save_dir.clear();
  plan.config.load.clear();
  return measure_memory(default_components(make_world(plan.config), plan), plan);
}

}  // namespace

CommandAction setup_plan(CommandLine& app) {
  CommandLine* memory = app.add_subcommand("memory", "what every rank will hold, and when it holds most");
  auto options = std::make_shared<ConfigOptions>(*memory);
  struct Show {
    bool json = false, measure = false;
  };
  auto show = std::make_shared<Show>();
  memory->add_flag("--measure", show->measure, "run two steps on simulated ranks and compare");
  memory->add_flag("--json", show->json, "print one JSON object");
  app.require_subcommand(0, 1);
  app.footer(
      "Examples:\n  ranklab plan memory --dp 4 --bf16 --zero-stage 2 --measure\n"
      "  ranklab plan memory --tp 2 --pp 2 --recompute-granularity full --json");
  return [&app, memory, options, show] {
    if (!memory->parsed()) {
      std::printf("%s", app.help().c_str());
      return 0;
    }
    const RunPlan plan = options->resolve(options->config());
    options->report_idle(plan);
    std::vector<MeasuredMemory> measured;
    if (show->measure) measured = measure(plan);
    const std::string text = show->json ? json_result(plan_memory_json(plan, measured))
                                        : plan_memory_text(plan, measured, style_for(stdout));
    std::fputs(text.c_str(), stdout);
    return 0;
  };
}

}  // namespace ranklab
