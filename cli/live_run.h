// A training run that can be watched while it goes on: `train --viz` opens the window in this process, `--viz-listen`
// lets `ranklab viz --attach` in over a unix socket. Thread rule: the main thread.
#pragma once
#include <string>

#include "cli/train_run.h"

namespace ranklab {

class CommandLine;

struct LiveRunOptions {
  bool window = false;
  bool listens = false;
  bool start_paused = false;
  std::string path = {};  // of the socket; empty: viz.sock in the run's folder

  bool any() const { return window || listens; }
};

void add_live_options(CommandLine& app, LiveRunOptions& options);
// The run's exit code. REQUIRES: options.any(), and a watched run.
int run_live(TrainRun& run, const LiveRunOptions& options);

}  // namespace ranklab
