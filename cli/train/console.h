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
  std::string trace_path;  // empty: no trace
  FILE* out = stdout;      // stdout belongs to the JSON lines with --json
  bool progress = true;    // a progress bar where both streams are terminals
  std::shared_ptr<LostOutputs> lost = std::make_shared<LostOutputs>();  // unwritten output, including its own text
};

std::shared_ptr<Hook> make_console_hook(ConsoleOptions options);

}  // namespace ranklab
