#include "cli/train/live_run.h"

#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>

#include "cli/common/command_module.h"
#include "cli/common/interrupt.h"
#include "cli/train/background_run.h"
#include "core/base/shell_quote.h"
#include "core/live/live_server.h"
#include "core/live/live_source.h"
#include "viz/app/window.h"

namespace ranklab {
namespace {

std::unique_ptr<LiveServer> open_server(TrainRun& run, const LiveRunOptions& options) {
  if (!options.listens) return nullptr;
  std::string path = options.path;
  if (path.empty()) {
    std::error_code ignored;  // the run's log reports problems with its folder
    std::filesystem::create_directories(run.log_dir(), ignored);
    path = run.log_dir() + "/viz.sock";
  }
  // If a run was started paused so that viewers see its beginning, it also stays paused for the next viewer.
  const bool lets_go = !options.window && !options.start_paused;
  auto server = std::make_unique<LiveServer>(path, run.live_feed(), run.stepper(), lets_go);
  std::fprintf(stderr, "viewers can attach: ranklab viz --attach %s\n", shell_path(path).c_str());
  return server;
}

// The window runs in the main thread, and the run in another thread as soon as there is a window. If the window is
// closed, the run continues to its end; Ctrl-C closes the window.
int run_beside_window(TrainRun& run) {
  std::optional<BackgroundRun> background;
  viz::VizRequest request;
  request.live = attach_in_process(run.live_feed(), run.stepper());
  request.opened = [&] { background.emplace(run); };
  request.closes = interrupt_requested;
  using RunWindow = int(const viz::VizRequest&);
  prepare_module("viz");
  reinterpret_cast<RunWindow*>(module_function("viz", "ranklab_run_window"))(request);
  run.stepper()->detach();
  return background->join();
}

}  // namespace

int run_live(TrainRun& run, const LiveRunOptions& options) {
  const std::unique_ptr<LiveServer> server = open_server(run, options);
  return options.window ? run_beside_window(run) : run.run();
}

}  // namespace ranklab
