// `ranklab bench cp`: computes one attention layer on context-parallel ranks, on shapes, with every exchange and every
// balance. Prints how many numbers a rank sends, next to the formulas; the virtual time; and how much of the ranks'
// time is useful (100 %: as fast as one GPU that computes 1/n of the attention), next to published measurements where
// they exist.
#pragma once
#include <cstdint>
#include <string>

namespace ranklab {

struct BenchContextOptions {
  int ranks = 8;
  int64_t positions = 8192;  // per rank
  int64_t heads = 32;
  int64_t groups = 8;  // key/value heads
  int64_t head_dim = 128;
  int64_t batch = 1;
  std::string hardware = "h800";
  // The fraction of the profile's peak that attention reaches. The published measurements used FlashAttention-2 on
  // Hopper (Shah et al. 2024, arXiv 2407.08608: 35 %).
  double efficiency = 0.337;
  bool json = false;
};

int run_bench_context(const BenchContextOptions& options);

}  // namespace ranklab
