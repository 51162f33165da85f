// `ranklab bench cp`: one attention layer over context-parallel ranks by every exchange and balance, on shapes: the
// numbers that a rank sends, beside the formulas; the virtual time, and how much of the ranks' time is useful (one GPU
// that attends to 1/n of it all would be 100 %), beside published measurements where there are some.
#pragma once
#include <cstdint>
#include <string>

namespace ranklab {

struct BenchContextOptions {
  int ranks = 8;
  int64_t positions = 8192;  // of a rank
  int64_t heads = 32;
  int64_t groups = 8;  // key/value heads
  int64_t head_dim = 128;
  int64_t batch = 1;
  std::string hardware = "h800";
  // The fraction of the profile's peak that attention reaches: FlashAttention-2 on Hopper (Shah et al. 2024, arXiv
  // 2407.08608: 35 %), which the published measurements ran.
  double efficiency = 0.337;
  bool json = false;
};

int run_bench_context(const BenchContextOptions& options);

}  // namespace ranklab
