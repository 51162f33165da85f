// `ranklab bench dispatchers`: compares the token dispatchers on one routing of the same tokens: what a rank sends
// inside its node and to other nodes, in how many calls, and the time on the virtual clock and on this machine. Experts
// are the identity, so that every result is known and can be checked.
#pragma once
#include <cstdint>
#include <string>

namespace ranklab {

struct BenchDispatchersOptions {
  int ranks = 16;
  int gpus_per_node = 8;
  int64_t tokens = 256;  // per rank
  int64_t hidden = 1024;
  int64_t experts = 64;
  int64_t topk = 8;
  int64_t groups = 1;      // groups of experts ...
  int64_t group_topk = 1;  // ... and from how many of them a token may choose its experts
  double skew = 0;         // expert e is chosen with weight (e + 1)^-skew
  int iterations = 5;
  uint64_t seed = 1234;
  std::string hardware = "h100-sxm";
  bool json = false;
};

int run_bench_dispatchers(const BenchDispatchersOptions& options);

}  // namespace ranklab
