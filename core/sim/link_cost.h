// How long a collective takes on a profile's links, by the alpha-beta model (Hockney; Thakur et al., "Optimization of
// Collective Communication Operations in MPICH", 2005). Ring algorithms, n = group size, S = logical bytes of the full
// tensor:
//   all_reduce      2(n-1) steps, each rank sends 2(n-1)/n S      reduce_scatter / all_gather   n-1 steps, (n-1)/n S
//   all_to_all      n-1 messages, the bytes this rank sends away  broadcast (pipelined ring)    n-1 steps, S
//   send / recv     1 step, S                                     barrier                       2 log2(n) steps, 0
//   bytes
// For all_to_all the caller passes exchange_bytes() as S: what this rank sends to others, excluding its own part. log2
// is rounded up. A group inside one node uses the intra-node link; one that spans nodes is bound by the slowest hop of
// its ring. With the profile's measured collectives (`--efficiency measured`, collective_efficiency.h) the time is that
// of the fastest protocol, a group with several GPUs on a node leaves it through as many NICs, and an all_reduce
// between nodes may use a tree of nodes. Software (software.h) scales the time of all collectives, with separate
// factors for tensor-parallel groups and for ZeRO's shards, and may send a pipeline's messages in parts.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/base/vocabulary.h"
#include "core/sim/collective_efficiency.h"
#include "core/sim/hardware_profile.h"

namespace ranklab {

struct TransferCost {
  int64_t latency_ns = 0;  // alpha part: until the first byte can arrive
  int64_t total_ns = 0;
  int64_t algorithm_bytes = 0;  // sent by this rank
  int steps = 0;
};

class LinkCost {
 public:
  // REQUIRES: global_ranks in group order. Ranks r and s share a node when r / gpus_per_node == s / gpus_per_node.
  // `axis`: the purpose of the group, for software that depends on it.
  LinkCost(const HardwareProfile& profile, std::span<const int> global_ranks, int gpus_per_node,
           Axis axis = Axis::kWorld);

  TransferCost collective(Verb verb, int64_t logical_bytes) const;
  TransferCost message(int from_group_rank, int to_group_rank, int64_t bytes) const;
  // The S of an all_to_all in which `self` has these bytes for each member: the number of bytes that would take as long
  // on the slowest link. Links inside a node and between nodes are used at the same time.
  int64_t exchange_bytes(std::span<const int64_t> bytes_of_member, int self) const;
  int64_t exchange_bytes(int64_t inside_node, int64_t between_nodes) const;
  // Cost of messages with these bytes that are sent one after another, until the last one has arrived.
  TransferCost puts(int64_t inside_node, int64_t between_nodes) const;
  bool crosses_nodes() const { return crosses_nodes_; }

 private:
  TransferCost transfer_of(Verb verb, int steps, int64_t bytes) const;
  int64_t gathered_ns(int64_t bytes, int parts) const;

  std::vector<int> node_;
  std::shared_ptr<const CollectiveEfficiency> measured_;
  double slower_ = 1, sharded_slower_ = 1;  // Software::collectives, SoftwareTerms
  double message_us_ = 0;
  int message_parts_ = 1;
  int node_share_ = 1;  // number of members on the node that has the fewest
  Link slowest_;
  Link intra_;
  Link inter_;
  bool crosses_nodes_ = false;
};

}  // namespace ranklab
