#include "cli/train/live_options.h"

#include "cli/common/command_line.h"

namespace ranklab {

void add_live_options(CommandLine& app, LiveRunOptions& options) {
  const char* group = "Watching";
  app.add_flag("--viz", options.window, "open the visualizer on this run while it trains")->group(group);
  app.add_option_function(
         "--viz-listen",
         [&options](const std::string& path) {
           options.listens = true;
           options.path = path;
         },
         "accept `ranklab viz --attach` on this unix socket (default: viz.sock in the run's folder)")
      ->expected(0, 1)
      ->default_str("")
      ->type_name("[PATH]")
      ->group(group);
  app.add_flag("--viz-paused", options.start_paused, "pause every rank at its first event until a viewer continues it")
      ->group(group);
}

}  // namespace ranklab
