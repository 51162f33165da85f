#include "core/plan/traffic.h"

#include <array>
#include <numeric>
#include <set>

#include "core/plan/planned_axes.h"
#include "core/plan/step_walk.h"
#include "core/sim/link_cost.h"

namespace ranklab {
namespace {

class TrafficCount final : public StepVisitor {
 public:
  explicit TrafficCount(const ParallelDims& dims) : dims_(dims) {}

  void compute(double, double, int) override {}
  void compute_fp8(double, double) override {}
  int post(Axis axis, Verb verb, int64_t logical_bytes) override {
    VerbTraffic& traffic = traffic_[{axis, verb}];
    ++traffic.calls;
    traffic.logical_bytes += logical_bytes;
    traffic.ring_bytes += rings(axis).collective(verb, logical_bytes).algorithm_bytes;
    return 0;
  }
  int exchange(Axis axis, const PlannedExchange& bytes) override {
    VerbTraffic& traffic = traffic_[{axis, bytes.puts > 0 ? Verb::kSend : Verb::kAllToAll}];
    traffic.calls += bytes.puts > 0 ? bytes.puts : 1;
    traffic.logical_bytes += bytes.logical;
    traffic.ring_bytes += bytes.in_node + bytes.across;
    traffic.across_bytes += bytes.across;
    return 0;
  }
  void wait(int) override {}
  void send(int pp_rank, int64_t bytes, bool) override {
    post(Axis::kPp, Verb::kSend, bytes);
    sent_to_[pp_rank] += bytes;
  }
  RankTraffic take() { return std::move(traffic_); }
  std::map<int, int64_t> take_sent() { return std::move(sent_to_); }

 private:
  // Bytes do not depend on the links, so any profile will do.
  const LinkCost& rings(Axis axis) {
    const auto found = rings_.find(axis);
    if (found != rings_.end()) return found->second;
    std::vector<int> ranks(static_cast<size_t>(dims_.size(axis)));
    std::iota(ranks.begin(), ranks.end(), 0);
    return rings_.emplace(axis, LinkCost(HardwareProfile{}, ranks, static_cast<int>(ranks.size()))).first->second;
  }

  const ParallelDims& dims_;
  std::map<Axis, LinkCost> rings_;
  RankTraffic traffic_;
  std::map<int, int64_t> sent_to_;  // messages of the pipeline, by its rank
};

struct RankCount {
  RankTraffic traffic;
  std::map<int, int64_t> sent_to;
};

RankCount count_rank(const StepShape& shape, const Schedule& schedule, int pp_rank) {
  TrafficCount count(shape.dims);
  walk_step(shape, schedule, pp_rank, count);
  return {count.take(), count.take_sent()};
}

// The part of a member's bytes that leaves its node.
int64_t bytes_across(const Group& group, size_t member, Verb verb, const VerbTraffic& traffic, int gpus_per_node) {
  if (verb == Verb::kAllToAll || (verb == Verb::kSend && group.axis == Axis::kEp)) return traffic.across_bytes;
  const int next = group.global_ranks[(member + 1) % group.global_ranks.size()];
  return next / gpus_per_node != group.global_ranks[member] / gpus_per_node ? traffic.ring_bytes : 0;
}

int64_t messages_across_nodes(const Group& group, size_t member, const RankCount& count, int gpus_per_node) {
  const auto node = [&](size_t i) { return group.global_ranks[i] / gpus_per_node; };
  int64_t bytes = 0;
  for (const auto& [peer, sent] : count.sent_to)
    if (node(static_cast<size_t>(peer)) != node(member)) bytes += sent;
  return bytes;
}

void add_group(AxisTraffic& row, const Group& group, const std::vector<RankCount>& by_pp_rank, const DeviceMesh& mesh,
               int gpus_per_node) {
  ++row.groups;
  if (nodes_of(group, gpus_per_node) > 1) ++row.groups_across_nodes;
  for (size_t member = 0; member < group.global_ranks.size(); ++member) {
    const int pp_rank = mesh.dims().pp == 1 ? 0 : mesh.coordinate(Axis::kPp, group.global_ranks[member]);
    const RankCount& count = by_pp_rank[static_cast<size_t>(pp_rank)];
    VerbTraffic mine;
    for (const auto& [key, traffic] : count.traffic) {
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
}

}  // namespace

int nodes_of(const Group& group, int gpus_per_node) {
  std::set<int> nodes;
  for (const int rank : group.global_ranks) nodes.insert(rank / gpus_per_node);
  return static_cast<int>(nodes.size());
}

RankTraffic predict_traffic(const StepShape& shape, const Schedule& schedule, int pp_rank) {
  return count_rank(shape, schedule, pp_rank).traffic;
}

std::vector<AxisTraffic> predict_axis_traffic(const StepShape& asked, const Schedule& schedule, const DeviceMesh& mesh,
                                              int gpus_per_node) {
  StepShape shape = asked;
  place_experts(shape, mesh, gpus_per_node);
  std::vector<RankCount> by_pp_rank;
  for (int rank = 0; rank < shape.dims.pp; ++rank) by_pp_rank.push_back(count_rank(shape, schedule, rank));
  constexpr std::array kAxes = {Axis::kTp,        Axis::kCp,         Axis::kDp, Axis::kDpCp, Axis::kDpShard,
                                Axis::kDpReplica, Axis::kPp,         Axis::kEp, Axis::kEtp,  Axis::kEdp,
                                Axis::kEdpShard,  Axis::kEdpReplica, Axis::kKv};
  std::vector<AxisTraffic> rows;
  for (const Axis axis : kAxes) {
    if (mesh.size(axis) == 1) continue;
    AxisTraffic row{.axis = axis, .group_size = mesh.size(axis), .planned = is_planned(axis)};
    for (const Group& group : mesh.groups(axis)) add_group(row, group, by_pp_rank, mesh, gpus_per_node);
    if (row.per_rank.calls > 0) rows.push_back(row);
  }
  return rows;
}

}  // namespace ranklab
