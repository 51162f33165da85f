// `ranklab bench quantize`: what rounding a matrix to few bits and reading it back costs on this machine, for each
// operand of each recipe, beside a memcpy of the same bytes: largest magnitudes, scales and numbers.
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
