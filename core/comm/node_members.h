// How the members of a group are distributed over nodes, which hold neighbouring ranks: r and s share a node when r /
// gpus_per_node equals s / gpus_per_node. Torch-free. Thread rule: pure.
#pragma once
#include <cstdint>
#include <map>

#include "core/comm/group.h"

namespace ranklab {

// The number of the group's members on each node that has at least one.
inline std::map<int, int64_t> members_of_nodes(const Group& group, int gpus_per_node) {
  std::map<int, int64_t> members;
  for (const int rank : group.global_ranks) ++members[rank / gpus_per_node];
  return members;
}

}  // namespace ranklab
