// `ranklab bench viz`: performance of the visualizer on this machine. A generated trace is written, then read, laid out
// and evaluated as `ranklab viz` does; then frames are drawn while zooming and panning.
#pragma once
#include <cstdint>

namespace ranklab {

struct BenchVizOptions {
  int64_t events = 1'000'000;
  int frames = 300;
  bool json = false;
};

int run_bench_viz(const BenchVizOptions& options);

}  // namespace ranklab
