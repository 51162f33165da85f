// The output of `ranklab train`: a banner, a table row per step, a progress bar on a terminal, the sample and the paths
// of the files.
#pragma once
#include <cstdio>
#include <memory>
#include <string>

#include "core/runtime/hooks.h"
#include "core/runtime/observe/lost_outputs.h"

namespace ranklab {

struct ConsoleOptions {
  int64_t log_interval = 1;
  std::string gemm;  // one line: which matrix multiplication was chosen and why
  std::string log_dir;
  std::string trace_path;     // empty: no trace
  std::string untraced = {};  // why there is none although one was wanted
  FILE* out = stdout;         // --json keeps stdout for programs
  bool progress = true;       // a progress bar where both streams are terminals
  std::shared_ptr<LostOutputs> lost = std::make_shared<LostOutputs>();  // unwritten output, including its own text
};

// Leaves out the trace of a run none of whose steps is traced, and says why. Known when training begins: a run that
// goes on starts after the steps that are traced by default.
void leave_out_empty_trace(ConsoleOptions& options, const TrainConfig& config, int64_t first_step);

std::shared_ptr<Hook> make_console_hook(ConsoleOptions options);

}  // namespace ranklab
