// The least that a training step can take on this machine: the time of its matrix products alone, on all cores, at the
// speed that the library of the run reaches on matrices of its choice. What a step takes beyond it went to everything
// else: small or narrow products, norms, copies, waiting. Cost: half a second to measure. Thread rule: from one thread,
// while no rank runs.
#pragma once

namespace ranklab {

// FLOP/s of all cores that this process may use, each multiplying fp32 matrices of its own by the library in use
// (core/nn/gemm.h); the best of some rounds, since others may be at work, too.
double measured_gemm_flops();

struct GemmLimit {
  double step_flops = 0;  // of the model's matrix products, forward and backward, attention's among them
  double peak_flops = 0;  // FLOP/s

  double ms() const { return step_flops / peak_flops * 1e3; }
  // 1: nothing but products at full speed.
  double share(double step_ms) const { return ms() / step_ms; }
};

}  // namespace ranklab
