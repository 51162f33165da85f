// `ranklab bench memory`: checks whether training uses more memory the longer it runs. Each layout trains a small model
// in a separate process, whose memory (without file-backed pages) is read after the warm-up and after the last step.
#pragma once
#include <string>

namespace ranklab {

struct BenchMemoryOptions {
  std::string program;
  int warmup = 500, steps = 2'000;
  bool json = false;
};
// Prints each row when it is measured. RETURNS 0.
int run_bench_memory(const BenchMemoryOptions& options);

}  // namespace ranklab
