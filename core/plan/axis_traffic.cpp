#include "core/plan/axis_traffic.h"

#include <array>
#include <set>

namespace ranklab {
namespace {

// The share of a member's bytes that leaves its node.
int64_t bytes_across(const Group& group, size_t member, Verb verb, const VerbTraffic& traffic, int gpus_per_node) {
  if (verb == Verb::kAllToAll || (verb == Verb::kSend && group.axis == Axis::kEp)) return traffic.across_bytes;
  const int next = group.global_ranks[(member + 1) % group.global_ranks.size()];
  return next / gpus_per_node != group.global_ranks[member] / gpus_per_node ? traffic.ring_bytes : 0;
}

int64_t messages_across_nodes(const Group& group, size_t member, const TrafficCount& count, int gpus_per_node) {
  const auto node = [&](size_t i) { return group.global_ranks[i] / gpus_per_node; };
  int64_t bytes = 0;
  for (const auto& [peer, sent] : count.sent_to)
    if (node(static_cast<size_t>(peer)) != node(member)) bytes += sent;
  return bytes;
}

void add_member(AxisTraffic& row, const Group& group, size_t member, const TrafficCount& count, int gpus_per_node) {
  VerbTraffic mine;
  for (const auto& [key, traffic] : count.calls) {
    if (key.first != row.axis) continue;
    mine.calls += traffic.calls;
    mine.logical_bytes += traffic.logical_bytes;
    mine.ring_bytes += traffic.ring_bytes;
    if (row.axis == Axis::kPp && key.second == Verb::kSend) continue;
    row.bytes_across_nodes += bytes_across(group, member, key.second, traffic, gpus_per_node);
  }
  if (row.axis == Axis::kPp) row.bytes_across_nodes += messages_across_nodes(group, member, count, gpus_per_node);
  row.total_bytes += mine.ring_bytes;
  if (mine.ring_bytes > row.per_rank.ring_bytes) row.per_rank = mine;
}

void add_group(AxisTraffic& row, const Group& group, const StepRecord& record, const DeviceMesh& mesh,
               int gpus_per_node) {
  ++row.groups;
  if (nodes_of(group, gpus_per_node) > 1) ++row.groups_across_nodes;
  for (size_t member = 0; member < group.global_ranks.size(); ++member) {
    const int pp_rank = mesh.dims().pp == 1 ? 0 : mesh.coordinate(Axis::kPp, group.global_ranks[member]);
    add_member(row, group, member, record.of_pipeline_rank(pp_rank).traffic, gpus_per_node);
  }
}

}  // namespace

int nodes_of(const Group& group, int gpus_per_node) {
  std::set<int> nodes;
  for (const int rank : group.global_ranks) nodes.insert(rank / gpus_per_node);
  return static_cast<int>(nodes.size());
}

std::vector<AxisTraffic> axis_traffic(const StepRecord& record, const DeviceMesh& mesh, int gpus_per_node) {
  constexpr std::array kAxes = {Axis::kTp,   Axis::kCp,      Axis::kCpHeads,   Axis::kCpRing,     Axis::kDp,
                                Axis::kDpCp, Axis::kDpShard, Axis::kDpReplica, Axis::kPp,         Axis::kEp,
                                Axis::kEtp,  Axis::kEdp,     Axis::kEdpShard,  Axis::kEdpReplica, Axis::kKv};
  std::vector<AxisTraffic> rows;
  for (const Axis axis : kAxes) {
    if (mesh.size(axis) == 1) continue;
    AxisTraffic row{.axis = axis, .group_size = mesh.size(axis)};
    for (const Group& group : mesh.groups(axis)) add_group(row, group, record, mesh, gpus_per_node);
    if (row.per_rank.calls > 0) rows.push_back(row);
  }
  return rows;
}

}  // namespace ranklab
