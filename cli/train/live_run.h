// A training run that can be watched while it goes on: `train --viz` opens the window in this process, `--viz-listen`
// lets `ranklab viz --attach` in over a unix socket. Thread rule: the main thread.
#pragma once
#include "cli/train/live_options.h"
#include "cli/train/train_run.h"

namespace ranklab {

// The run's exit code. REQUIRES: options.any(), and a watched run.
int run_live(TrainRun& run, const LiveRunOptions& options);

}  // namespace ranklab
