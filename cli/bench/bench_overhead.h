// `ranklab bench overhead`: the cost of watching. The same training steps with the tracer and the virtual clock on and
// off, alternating, and the watch's own time per collective (post and match) times the collectives of a step.
#pragma once

namespace ranklab {

struct BenchOverheadOptions {
  int repetitions = 5;
  int steps = 10;
  bool json = false;
};

int run_bench_overhead(const BenchOverheadOptions& options);

}  // namespace ranklab
