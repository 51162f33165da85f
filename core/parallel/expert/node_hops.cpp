#include "core/parallel/expert/node_hops.h"

#include <algorithm>
#include <map>

namespace ranklab {

NodeHops::NodeHops(const Group& group, int gpus_per_node) {
  std::map<int, int> known;
  for (int rank = 0; rank < group.size(); ++rank) {
    const int hardware = group.global_ranks[static_cast<size_t>(rank)] / gpus_per_node;
    const int node = known.try_emplace(hardware, static_cast<int>(known.size())).first->second;
    if (node == num_nodes()) members_.emplace_back();
    node_of_.push_back(node);
    std::vector<int>& members = members_[static_cast<size_t>(node)];
    place_in_node_.push_back(static_cast<int>(members.size()));
    members.push_back(rank);
    widest_ = std::max(widest_, members.size());
  }
}

int NodeHops::gateway(int node, int source) const {
  const std::vector<int>& members = members_[static_cast<size_t>(node)];
  return members[static_cast<size_t>(place_in_node_[static_cast<size_t>(source)]) % members.size()];
}

std::vector<int64_t> NodeHops::first(int rank, const std::vector<TokenSpread>& spreads) const {
  std::vector<int64_t> received;
  for (int source = 0; source < static_cast<int>(node_of_.size()); ++source) {
    const bool takes_in = gateway(node(rank), source) == rank;
    received.push_back(takes_in ? spreads[static_cast<size_t>(source)].node[static_cast<size_t>(node(rank))] : 0);
  }
  return received;
}

std::vector<int64_t> NodeHops::second(int rank, const std::vector<TokenSpread>& spreads) const {
  std::vector<int64_t> received(node_of_.size(), 0);
  for (int source = 0; source < static_cast<int>(node_of_.size()); ++source) {
    const auto through = static_cast<size_t>(gateway(node(rank), source));
    received[through] += spreads[static_cast<size_t>(source)].rank[static_cast<size_t>(rank)];
  }
  return received;
}

}  // namespace ranklab
