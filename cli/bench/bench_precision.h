// Repeats one training run with several precision recipes and seeds, and compares the final losses with the first
// recipe's.
#pragma once
#include <string>
#include <vector>

#include "core/config/train_config.h"

namespace ranklab {

struct BenchPrecisionOptions {
  std::vector<std::string> recipes = {"bf16", "deepseek_v3", "mxfp8", "nvfp4"};  // the first is the reference
  int seeds = 3;
  bool json = false;
};

// RETURNS: the program's exit code. Prints progress on standard error.
int run_bench_precision(const TrainConfig& config, const BenchPrecisionOptions& options);

}  // namespace ranklab
