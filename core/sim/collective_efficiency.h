// How long a library's collectives (NCCL) take on real links, compared with the links' datasheets: a call takes the
// time of the fastest of three protocols, each with a start-up time, a time per step of its ring and a rate (NCCL's LL,
// LL128 and Simple). Constants are fitted by core/sim/profiles/fit_kernels.py. Between nodes, a ring leaves each node
// through as many NICs as it has GPUs there. Thread rule: plain data.
#pragma once
#include <array>

namespace ranklab {

struct Protocol {
  double base_us = 0, hop_us = 0;
  double gb_s = 1;  // rate at which a GPU sends
};

struct CollectiveEfficiency {
  std::array<Protocol, 3> protocols = {};  // for short, medium and long messages
  // Rates of the latter two protocols by verb, relative to all_gather.
  double reduce_scatter = 1, all_reduce = 1, all_to_all = 1;
  double across_nodes = 1;   // fraction of the NICs' bandwidth that is reached
  double across_hop_us = 0;  // time per step between nodes
};

}  // namespace ranklab
