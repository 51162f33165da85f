// The same training in several precision recipes, with several seeds: where the losses end, beside the first recipe's.
#pragma once
#include <string>
#include <vector>

#include "core/config/train_config.h"

namespace ranklab {

struct BenchPrecisionOptions {
  std::vector<std::string> recipes = {"bf16", "deepseek_v3", "mxfp8", "nvfp4"};  // the first is what others are held to
  int seeds = 3;
  bool json = false;
};

// RETURNS: the program's exit code. Progress on standard error.
int run_bench_precision(const TrainConfig& config, const BenchPrecisionOptions& options);

}  // namespace ranklab
