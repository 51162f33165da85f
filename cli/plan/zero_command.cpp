// The options of `ranklab zero map`.
#include <cstdio>
#include <memory>

#include "cli/common/command.h"
#include "cli/common/command_line.h"
#include "cli/training_module.h"

namespace ranklab {

CommandAction setup_zero(CommandLine& app) {
  CommandLine* map = app.add_subcommand("map", "which rank owns which part of each parameter");
  auto options = std::make_shared<ConfigOptions>(*map);
  auto show = std::make_shared<ZeroMapRequest>();
  map->add_flag("--all", show->all, "print all owners, without a limit");
  map->add_flag("--json", show->json, "print one JSON object");
  app.require_subcommand(0, 1);
  app.footer(
      "Examples:\n  ranklab zero map --dp 4 --zero-stage 1\n"
      "  ranklab zero map --preset deepseek_v3_tiny --ep 4 --zero-stage 2 --json");
  return [&app, map, options, show] {
    if (!map->parsed()) {
      std::printf("%s", app.help().c_str());
      return 0;
    }
    const RunPlan plan = options->resolve(options->config());
    show->layout_note = options->layout_note();
    return training_functions().zero_map(plan, *show);
  };
}

}  // namespace ranklab
