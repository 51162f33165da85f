#include "core/comm/traffic_count.h"

#include <algorithm>

namespace ranklab {
namespace {

// The bytes that a rank keeps in an exchange between gateways, which connects it to no other rank of its node.
int64_t kept_as_gateway(const Event& event, const RankTrace& trace, int gpus_per_node) {
  if (event.verb != Verb::kAllToAll || event.axis != Axis::kEp || event.array == 0) return 0;
  const std::vector<double>& sent = trace.arrays[event.array - 1];
  const std::vector<int>& ranks = std::ranges::find(trace.groups, event.axis, &TraceGroup::axis)->global_ranks;
  bool leaves = false, has_neighbours = false;
  double own = 0;
  for (size_t member = 0; member < sent.size(); ++member) {
    if (ranks[member] == trace.global_rank) {
      own = sent[member];
      continue;
    }
    const bool here = ranks[member] / gpus_per_node == trace.global_rank / gpus_per_node;
    if (here && sent[member] > 0) return 0;
    (here ? has_neighbours : leaves) |= here || sent[member] > 0;
  }
  return leaves || has_neighbours ? static_cast<int64_t>(own) : 0;
}

}  // namespace

void TrafficCount::add(std::span<const Event> events, const RankTrace& trace, const DeviceMesh& mesh,
                       int gpus_per_node) {
  for (const Event& event : events) {
    if (event.kind != EventKind::kCollective || mesh.size(event.axis) == 1) continue;
    busy_ns[event.axis] += event.virtual_end_ns - event.virtual_begin_ns;
    if (event.verb == Verb::kRecv) continue;
    calls[{event.axis, event.verb}].add(
        {.calls = 1, .logical_bytes = event.logical_bytes, .ring_bytes = event.algorithm_bytes});
    to_own_node += kept_as_gateway(event, trace, gpus_per_node);
    if (event.verb == Verb::kSend && event.axis == Axis::kPp) sent_to[event.peer] += event.logical_bytes;
  }
}

void TrafficCount::add(const TrafficCount& other) {
  for (const auto& [key, more] : other.calls) calls[key].add(more);
  for (const auto& [axis, more] : other.busy_ns) busy_ns[axis] += more;
  for (const auto& [peer, more] : other.sent_to) sent_to[peer] += more;
  to_own_node += other.to_own_node;
}

}  // namespace ranklab
