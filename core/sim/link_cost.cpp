#include "core/sim/link_cost.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <unordered_map>

#include "core/base/error.h"

namespace ranklab {
namespace {

TransferCost transfer(const Link& link, int steps, int64_t bytes) {
  TransferCost cost;
  cost.steps = steps;
  cost.algorithm_bytes = bytes;
  cost.latency_ns = std::llround(link.latency_ns * steps);
  cost.total_ns = cost.latency_ns + std::llround(static_cast<double>(bytes) / link.bandwidth_bytes_per_ns);
  return cost;
}

double rate_of(const CollectiveEfficiency& e, Verb verb) {
  if (verb == Verb::kReduceScatter) return e.reduce_scatter;
  if (verb == Verb::kAllReduce) return e.all_reduce;
  return verb == Verb::kAllToAll ? e.all_to_all : 1.0;
}

// Rate of a tree relative to a ring: the bandwidth that the tuning model of NCCL 2 assumes for a tree all_reduce
// (src/graph/tuning.cc).
constexpr double kTreeRate = 0.92;

// Whether ZeRO shards what it gathers and scatters over groups of this axis.
bool shards_states(Axis axis) {
  return axis == Axis::kDp || axis == Axis::kDpCp || axis == Axis::kDpShard || axis == Axis::kEdp ||
         axis == Axis::kEdpShard;
}

// ceil(parts x bytes / n): the last chunk of an uneven ring is padded to the others' size.
int64_t ring_share(int64_t bytes, int64_t parts, int64_t n) { return (bytes * parts + n - 1) / n; }

}  // namespace

LinkCost::LinkCost(const HardwareProfile& profile, std::span<const int> global_ranks, int gpus_per_node, Axis axis)
    : measured_(profile.collectives),
      slower_(profile.software.collectives * (axis == Axis::kTp ? profile.software.terms.tensor_collectives : 1)),
      sharded_slower_(shards_states(axis) ? profile.software.terms.sharded_across_nodes : 1),
      message_us_(axis == Axis::kPp ? profile.software.terms.message_us : 0),
      message_parts_(axis == Axis::kPp ? profile.software.terms.message_parts : 1),
      intra_(profile.intra_node),
      inter_(profile.inter_node) {
  RANKLAB_CHECK(gpus_per_node > 0, ErrorKind::kInvalidArgument, .where = "sim link cost",
                .what = "a node needs at least one GPU", .got = std::to_string(gpus_per_node) + " GPUs per node",
                .want = "1 or more", .fix = "set --gpus-per-node");
  RANKLAB_CHECK(!global_ranks.empty(), ErrorKind::kInternal, .where = "sim link cost", .what = "an empty group",
                .got = "0 ranks", .want = "1 or more");
  node_.reserve(global_ranks.size());
  for (const int rank : global_ranks) node_.push_back(rank / gpus_per_node);
  crosses_nodes_ = std::any_of(node_.begin(), node_.end(), [&](int node) { return node != node_.front(); });
  slowest_ = intra_;
  node_share_ = static_cast<int>(node_.size());
  std::unordered_map<int, int> members;  // by node
  for (const int node : node_) ++members[node];
  for (const auto& [node, count] : members) node_share_ = std::min(node_share_, count);
  if (crosses_nodes_) {
    slowest_.latency_ns = std::max(intra_.latency_ns, inter_.latency_ns);
    slowest_.bandwidth_bytes_per_ns = std::min(intra_.bandwidth_bytes_per_ns, inter_.bandwidth_bytes_per_ns);
  }
}

TransferCost LinkCost::collective(Verb verb, int64_t logical_bytes) const {
  const int n = static_cast<int>(node_.size());
  if (n == 1) return {};
  switch (verb) {
    case Verb::kAllReduce:
      return transfer_of(verb, 2 * (n - 1), ring_share(logical_bytes, 2 * (n - 1), n));
    case Verb::kReduceScatter:
    case Verb::kAllGather:
      return transfer_of(verb, n - 1, ring_share(logical_bytes, n - 1, n));
    case Verb::kAllToAll:
    case Verb::kBroadcast:
      return transfer_of(verb, n - 1, logical_bytes);
    case Verb::kSend:
    case Verb::kRecv:
      return transfer_of(verb, 1, logical_bytes);
    case Verb::kBarrier:
      return transfer_of(verb, 2 * std::bit_width(static_cast<unsigned>(n - 1)), 0);
    case Verb::kCount:
      break;
  }
  throw Error(ErrorKind::kInternal, {.where = "sim link cost", .what = "not a verb"});
}

// A ring whose members are on several nodes takes one inter-node step per node; a message of an all_to_all that leaves
// the node has one NIC. An all_reduce over several nodes may instead go up and down a tree of nodes, in which a node's
// members form a chain: fewer steps, at a somewhat lower rate (NCCL's src/graph/tuning.cc).
TransferCost LinkCost::transfer_of(Verb verb, int steps, int64_t bytes) const {
  if (measured_ == nullptr) return transfer(slowest_, steps, bytes);
  const CollectiveEfficiency& e = *measured_;
  TransferCost best{.algorithm_bytes = bytes, .steps = steps};
  const int nics = verb == Verb::kAllToAll ? 1 : node_share_;
  const bool of_shards = verb == Verb::kAllGather || verb == Verb::kReduceScatter;
  const double across_gb_s = inter_.bandwidth_bytes_per_ns * e.across_nodes * nics / (of_shards ? sharded_slower_ : 1);
  const double rounds = node_.size() > 1 ? static_cast<double>(steps) / static_cast<double>(node_.size() - 1) : 1;
  const double nodes = static_cast<double>(node_.size()) / node_share_;
  const double across_us = crosses_nodes_ ? e.across_hop_us * rounds * (nodes - 1) : 0;
  const auto take = [&](double start_us, double gb_s) {
    const int64_t total_ns = std::llround(start_us * 1e3 + slower_ * static_cast<double>(bytes) / gb_s);
    if (best.total_ns > 0 && total_ns >= best.total_ns) return;
    best.latency_ns = std::llround(start_us * 1e3);
    best.total_ns = total_ns;
  };
  for (size_t i = 0; i < e.protocols.size(); ++i) {
    const Protocol& p = e.protocols[i];
    double gb_s = p.gb_s * (i == 0 ? 1.0 : rate_of(e, verb));
    if (crosses_nodes_) gb_s = std::min(gb_s, across_gb_s);
    take(p.base_us + p.hop_us * steps + across_us, gb_s);
    if (crosses_nodes_ && verb == Verb::kAllReduce)
      take(p.base_us + 2 * (p.hop_us * (node_share_ - 1) + e.across_hop_us * std::ceil(std::log2(nodes))),
           kTreeRate * gb_s);
  }
  return best;
}

int64_t LinkCost::exchange_bytes(std::span<const int64_t> bytes_of_member, int self) const {
  const int node = node_.at(static_cast<size_t>(self));
  int64_t inside = 0, between = 0;
  for (size_t member = 0; member < bytes_of_member.size(); ++member) {
    if (static_cast<int>(member) == self) continue;
    (node_.at(member) == node ? inside : between) += bytes_of_member[member];
  }
  return exchange_bytes(inside, between);
}

int64_t LinkCost::exchange_bytes(int64_t inside, int64_t between) const {
  if (!crosses_nodes_) return inside + between;
  const double slower = slowest_.bandwidth_bytes_per_ns / intra_.bandwidth_bytes_per_ns;
  return std::max(between, static_cast<int64_t>(std::ceil(static_cast<double>(inside) * slower)));
}

TransferCost LinkCost::puts(int64_t inside, int64_t between) const {
  TransferCost cost = transfer(intra_, between > 0 ? 0 : 1, inside);
  const TransferCost far = transfer(inter_, between > 0 ? 1 : 0, between);
  return {.latency_ns = cost.latency_ns + far.latency_ns,
          .total_ns = cost.total_ns + far.total_ns,
          .algorithm_bytes = inside + between,
          .steps = 1};
}

// The time that the ranks of a node take to gather a message of which each has received a part.
int64_t LinkCost::gathered_ns(int64_t bytes, int parts) const {
  const Protocol& p = measured_->protocols.back();
  return std::llround(p.base_us * 1e3 + static_cast<double>(bytes) * (parts - 1) / parts / p.gb_s);
}

TransferCost LinkCost::message(int from_group_rank, int to_group_rank, int64_t bytes) const {
  const int from = node_.at(static_cast<size_t>(from_group_rank));
  const int to = node_.at(static_cast<size_t>(to_group_rank));
  if (from_group_rank == to_group_rank) return {};
  const Link& link = from == to ? intra_ : inter_;
  TransferCost cost = transfer(link, 1, bytes);
  if (measured_ == nullptr) return cost;
  const Protocol& start = measured_->protocols.front();
  const double most =
      from == to ? measured_->protocols.back().gb_s : link.bandwidth_bytes_per_ns * measured_->across_nodes;
  const double start_us = start.base_us + start.hop_us + (from == to ? 0 : measured_->across_hop_us) + message_us_;
  cost.latency_ns = std::llround(start_us * 1e3);
  const double sent_ns = static_cast<double>(bytes) / std::min(link.bandwidth_bytes_per_ns, most);
  const int parts = from == to ? 1 : message_parts_;
  cost.total_ns = std::llround(start_us * 1e3 + sent_ns / parts);
  if (parts > 1) cost.total_ns += gathered_ns(bytes, parts);
  return cost;
}

}  // namespace ranklab
