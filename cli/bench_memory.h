// ranklab bench memory: whether training takes more memory the longer it runs. Each layout trains a small model in a
// process of its own; what it holds, without pages of files, is read after the warm-up and after the last step.
#pragma once
#include <string>

namespace ranklab {

struct BenchMemoryOptions {
  std::string program;
  int warmup = 500, steps = 2'000;
  bool json = false;
};
// Prints a row when it is there. RETURNS 0.
int run_bench_memory(const BenchMemoryOptions& options);

}  // namespace ranklab
