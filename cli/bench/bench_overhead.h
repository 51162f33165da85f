// `ranklab bench overhead`: the cost of watching. Runs the same training steps alternately with and without the tracer
// and the virtual clock, and multiplies the watch's own time per collective (post and match) by the number of
// collectives in a step.
#pragma once
#include <array>
#include <string>

namespace ranklab {

inline constexpr std::array<const char*, 4> kOverheadParts = {"layouts", "precision", "sentinels", "watch"};

struct BenchOverheadOptions {
  int repetitions = 5;
  int steps = 10;
  std::string only;  // a name in kOverheadParts; "": all parts
  bool json = false;
};

int run_bench_overhead(const BenchOverheadOptions& options);

}  // namespace ranklab
