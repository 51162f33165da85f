// Which library multiplies the linear layers' fp32 matrices on this CPU (core/nn/gemm.h): the same one for every run on
// this processor, so that the same command gives the same bits, or the one that a stopwatch finds faster. Either way
// only if it really computes in fp32. Thread rule: call from one thread before ranks start.
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

// By the processor alone: MKL keeps its fastest kernels for Intel's, so oneDNN serves all others. Checks oneDNN's error
// on one small product, whatever the model. Cost: a millisecond. Leaves the process-wide setting as it was, as does
// measure_gemm.
GemmChoice usual_gemm();

// Measures both, forward and both backward forms. Cost: about 50 ms. Two runs may choose differently where the two are
// about as fast, and their last digits then differ.
GemmChoice measure_gemm(std::span<const GemmShape> shapes);

}  // namespace ranklab
