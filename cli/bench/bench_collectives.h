// `ranklab bench collectives`: compares every verb on the three paths of the thread world, in nccl-tests' terms. size =
// bytes of the full tensor; time = median (and minimum) of one call on rank 0; algbw = size / time; busbw = algbw x the
// factor that makes it comparable with a link's speed (all_reduce 2(n-1)/n, all_gather, reduce_scatter and all_to_all
// (n-1)/n, broadcast 1). All paths run in one process, sequentially, on the same tensors.
#pragma once
#include <cstdint>
#include <vector>

namespace ranklab {

struct BenchCollectivesOptions {
  int ranks = 8;
  std::vector<int64_t> sizes = {4 << 10, 64 << 10, 1 << 20, 16 << 20};  // bytes
  int iterations = 0;  // per size and verb; 0: 100 for small tensors down to 7 for large ones
  bool json = false;
};

// Prints the table and the cost of the watch; returns the exit code.
int run_bench_collectives(const BenchCollectivesOptions& options);

// The average time, in microseconds, to post a call to the match table, including the poster's share of the matching:
// what the watch costs a rank in each call, apart from waiting.
double measure_post_us(int ranks);

}  // namespace ranklab
