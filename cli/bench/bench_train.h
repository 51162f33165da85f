// `ranklab bench train`: ranklab's training step compared with PyTorch's on the same machine, model, batch and weight
// count. Every row is a separate process; a layout's rows alternate, and are printed when it is done: medians over
// repetitions, their ratios, and the fraction of the machine's limit (cli/bench/gemm_limit.h) that ranklab reaches.
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

// The layouts that --modes takes.
std::vector<std::string> bench_train_modes();

int run_bench_train(const BenchTrainOptions& options);

}  // namespace ranklab
