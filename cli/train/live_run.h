// A training run that can be watched while it runs: `train --viz` opens the window in this process; with
// `--viz-listen`, `ranklab viz --attach` can connect over a unix socket. Thread rule: the main thread.
#pragma once
#include "cli/train/live_options.h"
#include "cli/train/train_run.h"

namespace ranklab {

// RETURNS: the run's exit code. REQUIRES: options.any(), and a watched run.
int run_live(TrainRun& run, const LiveRunOptions& options);

}  // namespace ranklab
