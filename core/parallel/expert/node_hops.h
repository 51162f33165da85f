// The two hops of a token to its experts, for clusters whose links within a node are faster than those between nodes:
// first to one rank (the gateway) of each node that has experts of the token, which then forwards it within the node
// (DeepEP's inter-node kernels, DeepSeek-V3, arXiv 2412.19437, section 3.2.2). The gateway is the rank with the same
// index in its node as the token's own rank. Pure arithmetic over the members of a group. Thread rule: immutable.
#pragma once
#include <cstdint>
#include <vector>

#include "core/comm/group.h"

namespace ranklab {

// The number of a rank's tokens that have experts on each node, and on each rank of the group.
struct TokenSpread {
  std::vector<int64_t> node, rank;
};

class NodeHops {
 public:
  NodeHops(const Group& group, int gpus_per_node);

  int num_nodes() const { return static_cast<int>(members_.size()); }
  int members(int node) const { return static_cast<int>(members_[static_cast<size_t>(node)].size()); }
  int node(int group_rank) const { return node_of_[static_cast<size_t>(group_rank)]; }
  // The rank of `node` that receives the tokens of `source`.
  int gateway(int node, int source) const;
  // Whether the first and the second hop lead to other ranks at all.
  bool crosses_nodes() const { return num_nodes() > 1; }
  bool spreads_in_node() const { return widest_ > 1; }

  // Rows that `rank` receives from each member in the first and in the second hop, given every member's spread.
  std::vector<int64_t> first(int rank, const std::vector<TokenSpread>& spreads) const;
  std::vector<int64_t> second(int rank, const std::vector<TokenSpread>& spreads) const;

 private:
  std::vector<int> node_of_;
  std::vector<int> place_in_node_;
  std::vector<std::vector<int>> members_;  // group ranks per node
  size_t widest_ = 1;
};

}  // namespace ranklab
