// One benchmark run in this process: the training step of a preset, timed after warm-up, and the process's own costs.
#pragma once
#include <string>

#include "cli/bench/gemm_limit.h"
#include "core/config/train_config.h"

namespace ranklab {

struct StepBenchResult {
  std::string gemm;
  double startup_s = 0;     // process launch to the start of the first step
  double first_step_s = 0;  // process launch to the end of the first step
  double step_ms = 0;       // median
  double cpu_ms = 0;        // of all threads, mean; varies less with the load of other programs than step_ms
  double tokens_per_s = 0;
  double pss_mb = 0;  // proportional set size: the maximum of the values after the first and after the last step
  double warm_own_mb = 0, last_own_mb = 0;  // without file-backed pages, after the warm-up and after the last step
  double loss_first = 0;
  GemmLimit limit;
};

// `launch_s`: when the process was launched, in seconds since the epoch (0: now).
StepBenchResult run_step_bench(TrainConfig config, int warmup, int steps, double launch_s);

}  // namespace ranklab
