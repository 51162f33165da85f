// How long collectives of a library take on real links (NCCL), beside the links' datasheets: a call takes the fastest
// of three protocols, each with a start, a time per step of its ring and a rate (NCCL's LL, LL128 and Simple).
// Constants are fitted by core/sim/profiles/fit_kernels.py. Between nodes a ring leaves each node through as many NICs
// as it has GPUs there. Thread rule: plain data.
#pragma once
#include <array>

namespace ranklab {

struct Protocol {
  double base_us = 0, hop_us = 0;
  double gb_s = 1;  // that a GPU sends
};

struct CollectiveEfficiency {
  std::array<Protocol, 3> protocols = {};  // for short, middle and long messages
  // Rates of the latter two by verb, all_gather's is 1.
  double reduce_scatter = 1, all_reduce = 1, all_to_all = 1;
  double across_nodes = 1;   // of the NICs' bandwidth, reached
  double across_hop_us = 0;  // a step between nodes
};

}  // namespace ranklab
