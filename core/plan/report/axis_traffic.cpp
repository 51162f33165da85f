#include "core/plan/report/axis_traffic.h"

#include <array>
#include <cmath>
#include <map>
#include <utility>

#include "core/comm/node_members.h"
#include "core/parallel/expert/token_spread.h"
#include "core/spec/moe_dispatcher_names.h"

namespace ranklab {
namespace {

struct PlacedGroup {
  Group group;
  int gpus_per_node;
  std::map<int, int64_t> members = members_of_nodes(group, gpus_per_node);

  int node(size_t member) const { return group.global_ranks[member] / gpus_per_node; }
};

// The bytes of a member that leave its node: along its ring, or, in an all_to_all, the parts sent to each other member,
// which are assumed to be equal.
int64_t bytes_across(const PlacedGroup& placed, size_t member, Verb verb, int64_t sent) {
  const size_t size = placed.group.global_ranks.size();
  if (verb == Verb::kAllToAll || (verb == Verb::kSend && placed.group.axis == Axis::kEp)) {
    const auto others = static_cast<int64_t>(size) - 1;
    return sent * (others + 1 - placed.members.at(placed.node(member))) / others;
  }
  return placed.node((member + 1) % size) != placed.node(member) ? sent : 0;
}

int64_t messages_across_nodes(const PlacedGroup& placed, size_t member, const TrafficCount& count) {
  int64_t bytes = 0;
  for (const auto& [peer, sent] : count.sent_to)
    if (placed.node(static_cast<size_t>(peer)) != placed.node(member)) bytes += sent;
  return bytes;
}

// Exchanges in which a token goes to each other node at most once (core/parallel/expert/node_hops.h), estimated from
// what the recorded ranks sent between the nodes of their own groups, or, in groups on one node, to the ranks.
class DedupTraffic {
 public:
  DedupTraffic(const StepRecord& record, const RunPlan& plan)
      : moe_(plan.config.model.moe), ep_(plan.mesh.size(Axis::kEp)) {
    const DispatcherText* dispatcher = dispatcher_text(plan.config.moe_dispatcher);
    if (ep_ == 1 || dispatcher == nullptr || !dispatcher->once_a_node) return;
    for (const RankRecord& rank : record.ranks) {
      const auto sent = rank.traffic.calls.find(kExchange);
      if (sent == rank.traffic.calls.end()) continue;
      const Group own = plan.mesh.group(Axis::kEp, rank.global_rank);
      const PlacedGroup placed{.group = own, .gpus_per_node = plan.gpus_per_node()};
      const bool on_one = placed.members.size() == 1;
      const auto bytes = static_cast<double>(on_one ? sent->second.ring_bytes : rank.traffic.to_own_node);
      const int64_t neighbours = placed.members.at(placed.node(static_cast<size_t>(own.group_rank)));
      bytes_of_a_copy_[rank.pp_rank] = bytes / (on_one ? (ep_ - 1) * chance_of(1) : chance_of(neighbours));
    }
  }

  bool has(Axis axis, Verb verb) const { return !bytes_of_a_copy_.empty() && std::pair(axis, verb) == kExchange; }
  // The bytes that leave a member's node.
  int64_t bytes_across(const PlacedGroup& placed, size_t member, int pp_rank) const {
    double copies = 0;
    for (const auto& [node, members] : placed.members)
      if (node != placed.node(member)) copies += chance_of(members);
    return std::llround(copies * bytes_of_a_copy_.at(pp_rank));
  }

 private:
  static constexpr std::pair kExchange{Axis::kEp, Verb::kAllToAll};
  double chance_of(int64_t members) const { return chance_of_place(moe_, moe_.num_experts / ep_ * members); }

  MoeConfig moe_;
  int ep_;
  std::map<int, double> bytes_of_a_copy_;  // bytes if each token went to one place, by pipeline rank
};

void add_member(AxisTraffic& row, const PlacedGroup& placed, size_t member, const RankRecord& recorded,
                const DedupTraffic& dedup) {
  const TrafficCount& count = recorded.traffic;
  VerbTraffic mine;
  for (const auto& [key, traffic] : count.calls) {
    const auto& [axis, verb] = key;
    if (axis != row.axis) continue;
    mine.add(traffic);
    if (axis == Axis::kPp && verb == Verb::kSend) continue;
    row.bytes_across_nodes += dedup.has(axis, verb) ? dedup.bytes_across(placed, member, recorded.pp_rank)
                                                    : bytes_across(placed, member, verb, traffic.ring_bytes);
  }
  if (row.axis == Axis::kPp) row.bytes_across_nodes += messages_across_nodes(placed, member, count);
  row.total_bytes += mine.ring_bytes;
  if (mine.ring_bytes > row.per_rank.ring_bytes) row.per_rank = mine;
}

void add_group(AxisTraffic& row, Group group, const StepRecord& record, const RunPlan& plan,
               const DedupTraffic& dedup) {
  const PlacedGroup placed{.group = std::move(group), .gpus_per_node = plan.gpus_per_node()};
  ++row.groups;
  if (placed.members.size() > 1) ++row.groups_across_nodes;
  for (size_t member = 0; member < placed.group.global_ranks.size(); ++member) {
    const int rank = placed.group.global_ranks[member];
    const int pp_rank = plan.mesh.dims().pp == 1 ? 0 : plan.mesh.coordinate(Axis::kPp, rank);
    add_member(row, placed, member, record.of_pipeline_rank(pp_rank), dedup);
  }
}

}  // namespace

std::vector<AxisTraffic> axis_traffic(const StepRecord& record, const RunPlan& plan) {
  constexpr std::array kAxes = {Axis::kTp,       Axis::kCp,         Axis::kCpHeads, Axis::kCpRing,
                                Axis::kDp,       Axis::kDpCp,       Axis::kDpShard, Axis::kDpReplica,
                                Axis::kPp,       Axis::kEp,         Axis::kEtp,     Axis::kEdp,
                                Axis::kEdpShard, Axis::kEdpReplica, Axis::kKv,      Axis::kWorld};
  const DedupTraffic dedup(record, plan);
  std::vector<AxisTraffic> rows;
  for (const Axis axis : kAxes) {
    if (plan.mesh.size(axis) == 1) continue;
    AxisTraffic row{.axis = axis, .group_size = plan.mesh.size(axis)};
    for (Group& group : plan.mesh.groups(axis)) add_group(row, std::move(group), record, plan, dedup);
    if (row.per_rank.calls > 0) rows.push_back(row);
  }
  return rows;
}

}  // namespace ranklab
