// `ranklab bench overhead`: the cost of watching. The same training steps with the tracer and the virtual clock on and
// off, alternating, and the watch's own time per collective (post and match) times the collectives of a step.
#pragma once
#include <array>
#include <string>

namespace ranklab {

inline constexpr std::array<const char*, 4> kOverheadParts = {"layouts", "precision", "sentinels", "watch"};

struct BenchOverheadOptions {
  int repetitions = 5;
  int steps = 10;
  std::string only;  // a word of kOverheadParts; "": all
  bool json = false;
};

int run_bench_overhead(const BenchOverheadOptions& options);

}  // namespace ranklab
