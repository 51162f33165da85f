// `ranklab bench train`: ranklab's training step beside PyTorch's on the same machine, model, batch and weight count.
// Every row is a process of its own; the rows of a layout take turns, and their medians over repetitions are printed
// with their ratios when the layout is done, and how much of the machine's limit (cli/gemm_limit.h) ranklab reaches.
#pragma once
#include <string>
#include <vector>

namespace ranklab {

struct BenchTrainOptions {
  std::string program;      // this executable
  std::string peer_python;  // a Python with torch; empty: only ranklab's side
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
