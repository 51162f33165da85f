// The two hops of a token to its experts when links inside a node are faster than those between nodes: to one rank of
// each node that has an expert of it, which hands it on inside the node (DeepEP's inter-node kernels, DeepSeek-V3,
// arXiv 2412.19437, section 3.2.2). The rank that takes a token in is the one with the same place in its node as the
// token's own. Pure arithmetic over the members of a group. Thread rule: immutable.
#pragma once
#include <cstdint>
#include <vector>

#include "core/comm/group.h"

namespace ranklab {

// How many of a rank's tokens have work on each node and on each rank of the group.
struct TokenSpread {
  std::vector<int64_t> node, rank;
};

class NodeHops {
 public:
  NodeHops(const Group& group, int gpus_per_node);

  int num_nodes() const { return static_cast<int>(members_.size()); }
  int node(int group_rank) const { return node_of_[static_cast<size_t>(group_rank)]; }
  // The rank of `node` that takes in the tokens of `source`.
  int gateway(int node, int source) const;
  // Whether a hop leads to other ranks at all.
  bool crosses_nodes() const { return num_nodes() > 1; }
  bool spreads_in_node() const { return widest_ > 1; }

  // Rows that `rank` receives from each member in the first and in the second hop, from every member's spread.
  std::vector<int64_t> first(int rank, const std::vector<TokenSpread>& spreads) const;
  std::vector<int64_t> second(int rank, const std::vector<TokenSpread>& spreads) const;

 private:
  std::vector<int> node_of_;
  std::vector<int> place_in_node_;
  std::vector<std::vector<int>> members_;  // of each node
  size_t widest_ = 1;
};

}  // namespace ranklab
