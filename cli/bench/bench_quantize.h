// `ranklab bench quantize`: the cost of quantizing and dequantizing a matrix on this machine (amax, scales and codes),
// for each operand of each recipe, compared with a memcpy of the same bytes.
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
