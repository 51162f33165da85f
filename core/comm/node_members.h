// How the members of groups are distributed over nodes, which hold neighbouring ranks: r and s share a node when r /
// gpus_per_node equals s / gpus_per_node. Cost: one visit per group member. Torch-free. Thread rule: pure.
#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "core/comm/device_mesh.h"

namespace ranklab {

// The number of the group's members on each node that has at least one.
inline std::map<int, int64_t> members_of_nodes(const Group& group, int gpus_per_node) {
  std::map<int, int64_t> members;
  for (const int rank : group.global_ranks) ++members[rank / gpus_per_node];
  return members;
}

// For each rank, how many nodes its group of this axis spans.
std::vector<int64_t> nodes_of_groups(const DeviceMesh& mesh, Axis axis, int gpus_per_node);
// For each rank, the number of members on other nodes, in all of its groups of these axes.
std::vector<int64_t> members_elsewhere(const DeviceMesh& mesh, std::span<const Axis> axes, int gpus_per_node);
// Whether all groups of this axis change nodes between the same members.
bool change_nodes_alike(const DeviceMesh& mesh, Axis axis, int gpus_per_node);

}  // namespace ranklab
