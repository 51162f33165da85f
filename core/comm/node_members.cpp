#include "core/comm/node_members.h"

#include <set>
#include <utility>

namespace ranklab {

std::vector<int64_t> nodes_of_groups(const DeviceMesh& mesh, Axis axis, int gpus_per_node) {
  std::vector<int64_t> nodes(static_cast<size_t>(mesh.world_size()), 0);
  for (const Group& group : mesh.groups(axis)) {
    const auto spanned = static_cast<int64_t>(members_of_nodes(group, gpus_per_node).size());
    for (const int rank : group.global_ranks) nodes[static_cast<size_t>(rank)] = spanned;
  }
  return nodes;
}

std::vector<int64_t> members_elsewhere(const DeviceMesh& mesh, std::span<const Axis> axes, int gpus_per_node) {
  std::vector<int64_t> elsewhere(static_cast<size_t>(mesh.world_size()), 0);
  for (const Axis axis : axes) {
    if (mesh.size(axis) == 1) continue;
    for (const Group& group : mesh.groups(axis)) {
      const std::map<int, int64_t> here = members_of_nodes(group, gpus_per_node);
      for (const int rank : group.global_ranks)
        elsewhere[static_cast<size_t>(rank)] += group.size() - here.at(rank / gpus_per_node);
    }
  }
  return elsewhere;
}

bool change_nodes_alike(const DeviceMesh& mesh, Axis axis, int gpus_per_node) {
  std::set<std::vector<bool>> patterns;
  for (const Group& group : mesh.groups(axis)) {
    std::vector<bool> between;
    for (size_t member = 1; member < group.global_ranks.size(); ++member)
      between.push_back(group.global_ranks[member] / gpus_per_node != group.global_ranks[member - 1] / gpus_per_node);
    patterns.insert(std::move(between));
  }
  return patterns.size() <= 1;
}

}  // namespace ranklab
