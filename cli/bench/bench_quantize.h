// `ranklab bench quantize`: the cost of quantizing a matrix and dequantizing it on this machine, for each operand of
// each recipe, compared with a memcpy of the same bytes: amax, scales and codes.
#pragma once
#include <cstdint>

namespace ranklab {

struct BenchQuantizeOptions {
  int64_t rows = 4096, cols = 1024;
  int repetitions = 15;
  bool json = false;
};

int run_bench_quantize(const BenchQuantizeOptions& options);

}  // namespace ranklab
