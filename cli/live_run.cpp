#include "cli/live_run.h"
#include "cli/command_line.h"

#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>

#include "cli/background_run.h"
#include "cli/command_module.h"
#include "cli/interrupt.h"
#include "core/trace/live_server.h"
#include "core/trace/live_source.h"
#include "viz/app/window.h"

namespace ranklab {
namespace {

std::unique_ptr<LiveServer> open_server(TrainRun& run, const LiveRunOptions& options) {
  if (!options.listens) return nullptr;
  std::string path = options.path;
  if (path.empty()) {
    std::error_code ignored;  // the run's log says what is wrong with its folder
    std::filesystem::create_directories(run.log_dir(), ignored);
    path = run.log_dir() + "/viz.sock";
  }
  auto server = std::make_unique<LiveServer>(path, run.live_feed(), run.stepper());
  std::fprintf(stderr, "viewers may come: ranklab viz --attach %s\n", path.c_str());
  return server;
}

// The window is the main thread's, the run goes on in another from when there is a window; closing it lets the run go
// on to its end, Ctrl-C closes it.
int run_beside_window(TrainRun& run) {
  std::optional<BackgroundRun> background;
  viz::VizRequest request;
  request.live = attach_in_process(run.live_feed(), run.stepper());
  request.opened = [&] { background.emplace(run); };
  request.closes = interrupt_asked;
  using RunWindow = int(const viz::VizRequest&);
  prepare_module("viz");
  reinterpret_cast<RunWindow*>(module_function("viz", "ranklab_run_window"))(request);
  run.stepper()->detach();
  return background->join();
}

}  // namespace

void add_live_options(CommandLine& app, LiveRunOptions& options) {
  const char* group = "Watching";
  app.add_flag("--viz", options.window, "open the visualizer on this run, which goes on beside it")->group(group);
  app.add_option_function(
         "--viz-listen",
         [&options](const std::string& path) {
           options.listens = true;
           options.path = path;
         },
         "let `ranklab viz --attach` in at this unix socket (default: viz.sock in the run's folder)")
      ->expected(0, 1)
      ->default_str("")
      ->type_name("[PATH]")
      ->group(group);
  app.add_flag("--viz-paused", options.start_paused, "hold every rank at its first event until a viewer lets it go")
      ->group(group);
}

int run_live(TrainRun& run, const LiveRunOptions& options) {
  const std::unique_ptr<LiveServer> server = open_server(run, options);
  return options.window ? run_beside_window(run) : run.run();
}

}  // namespace ranklab
