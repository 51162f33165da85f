// The lower bound for a training step on this machine: the time of its matrix products alone, on all cores, at the
// speed that the run's library reaches on matrices of sizes that suit it. Any further time is spent on everything else:
// small or narrow products, norms, copies, waiting. Cost: half a second to measure. Thread rule: from one thread, while
// no rank runs.
#pragma once

namespace ranklab {

// The FLOP/s of all cores that this process may use, each multiplying its own fp32 matrices with the library in use
// (core/nn/gemm.h). The best of several rounds, since other programs may be running.
double measured_gemm_flops();

struct GemmLimit {
  double step_flops = 0;  // of the model's matrix products, forward and backward, including attention's
  double peak_flops = 0;  // FLOP/s

  double ms() const { return step_flops / peak_flops * 1e3; }
  // 1 means that the step does nothing but matrix products at full speed.
  double share(double step_ms) const { return ms() / step_ms; }
};

}  // namespace ranklab
