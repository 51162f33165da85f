// Which library computes the fp32 GEMMs of linear layers on this CPU (core/nn/gemm.h): either a fixed choice per
// processor, so that the same command gives the same bits, or the one that measures faster. oneDNN is used only if it
// really computes in fp32. Thread rule: call from one thread before ranks start.
#pragma once
#include <cstdint>
#include <span>
#include <string>

#include "core/nn/gemm.h"

namespace ranklab {

// y[m, n] = x[m, k] w[n, k]^T, computed `count` times per step.
struct GemmShape {
  int64_t m = 0, n = 0, k = 0;
  int64_t count = 1;
};

struct GemmChoice {
  GemmLibrary library = GemmLibrary::kMkl;
  std::string reason;  // "oneDNN: 1.8x faster than MKL on the model's shapes, error 6e-07 against fp64"
};

// Chooses by processor alone: MKL's fastest kernels are for Intel processors, so oneDNN is used on all others. Checks
// oneDNN's error on one small GEMM, whatever the model. Cost: a millisecond. Like measure_gemm, restores the
// process-wide setting.
GemmChoice usual_gemm();

// Measures both libraries, forward and both backward GEMMs. Cost: about 50 ms. Where the two are about equally fast,
// two runs may choose differently and then differ in their last digits.
GemmChoice measure_gemm(std::span<const GemmShape> shapes);

}  // namespace ranklab
