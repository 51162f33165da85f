// Which library multiplies the linear layers' fp32 matrices on this CPU (core/nn/gemm.h): measure both on the model's
// own shapes, forward and both backward forms, and take the faster, but only if it really computes in fp32. Cost: about
// 50 ms, once. Thread rule: call from one thread before ranks start.
#pragma once
#include <cstdint>
#include <span>
#include <string>

#include "core/nn/gemm.h"

namespace ranklab {

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

}  // namespace ranklab
