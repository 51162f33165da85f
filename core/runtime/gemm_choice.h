// Which library multiplies fp32 matrices on this CPU: LibTorch carries Intel MKL and oneDNN, and neither is always
// faster (on AMD oneDNN's is up to 2.2x faster on large shapes and slower on small ones). So measure both on the
// model's own shapes, forward and both backward forms, and take the faster, but only if it really computes in fp32: on
// CPUs with AMX the same switch means bf16. Cost: a few tens of milliseconds, once, before ranks start. Thread rule:
// process-wide setting; call from one thread before ranks start.
#pragma once
#include <cstdint>
#include <span>
#include <string>

namespace ranklab {

enum class GemmLibrary { kMkl, kOneDnn };

// y[m, n] = x[m, k] w[n, k]^T, done `count` times a step.
struct GemmShape {
  int64_t m = 0, n = 0, k = 0;
  int64_t count = 1;
};

struct GemmChoice {
  GemmLibrary library = GemmLibrary::kMkl;
  std::string reason;  // "oneDNN: 1.8x faster than MKL on the model's shapes, error 6e-07 against fp64"
};

// Leaves the process-wide setting as it was.
GemmChoice measure_gemm(std::span<const GemmShape> shapes);

void use_gemm(GemmLibrary library);

}  // namespace ranklab
