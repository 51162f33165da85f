// `ranklab bench kernels`: the cost of the fused training kernels at the shapes of llama_1b. Each forward and backward
// is compared with the same computation in plain ATen ops and with a copy of as many bytes, on the device's own clock.
// A model's layers call these same functions.
#pragma once
#include <cstdint>
#include <string>

namespace ranklab {

struct BenchKernelsOptions {
  std::string device = "auto";  // auto: a GPU if there is one
  int64_t tokens = 8192;
  int64_t seq_length = 8192;         // for attention
  int64_t parameters = 100'000'000;  // for AdamW and gradients
  int iterations = 20;
  bool json = false;
};

int run_bench_kernels(const BenchKernelsOptions& options);

}  // namespace ranklab
