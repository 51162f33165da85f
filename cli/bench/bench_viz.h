// `ranklab bench viz`: performance of the visualizer on this machine. Writes a generated trace; reads, lays out and
// evaluates it as `ranklab viz` does; then draws frames while zooming and panning.
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
