// `ranklab bench train`: compares ranklab's training step with PyTorch's on the same machine, model, batch and weight
// count. Every row is a separate process. The rows of a layout alternate; when a layout is done, its medians over the
// repetitions, their ratios, and the fraction of the machine's limit (cli/bench/gemm_limit.h) that ranklab reaches are
// printed.
#pragma once
#include <string>
#include <vector>

namespace ranklab {

struct BenchTrainOptions {
  std::string program;      // this executable
  std::string peer_python;  // a Python with torch; empty: only ranklab is measured
  std::string peer_script;
  std::string preset = "S";  // S or M
  int repetitions = 3;
  int warmup = 2;
  int steps = 5;
  bool json = false;
  std::vector<std::string> modes = {"single", "dp8", "tp8", "tp8-sp"};
};

// The layouts that --modes accepts.
std::vector<std::string> bench_train_modes();

int run_bench_train(const BenchTrainOptions& options);

}  // namespace ranklab
