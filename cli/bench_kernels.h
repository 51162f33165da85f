// `ranklab bench kernels`: what the fused kernels of training cost at the shapes of llama_1b, each forward and backward
// beside the same in plain ATen ops and beside a copy of as many bytes, by the device's own clock. A model's layers
// call these very functions.
#pragma once
#include <cstdint>
#include <string>

namespace ranklab {

struct BenchKernelsOptions {
  std::string device = "auto";  // auto: a GPU where there is one
  int64_t tokens = 8192;
  int64_t seq_length = 8192;         // of attention
  int64_t parameters = 100'000'000;  // of AdamW and of gradients
  int iterations = 20;
  bool json = false;
};

int run_bench_kernels(const BenchKernelsOptions& options);

}  // namespace ranklab
