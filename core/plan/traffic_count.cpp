#include "core/plan/traffic_count.h"

namespace ranklab {
namespace {

// The part of an event's sent bytes that leaves the rank's node, for verbs that send each member its own part.
int64_t across_bytes(const Event& event, const RankTrace& trace, const Group& group, int gpus_per_node) {
  const int node = trace.global_rank / gpus_per_node;
  const auto elsewhere = [&](size_t member) { return group.global_ranks[member] / gpus_per_node != node; };
  if (event.verb == Verb::kSend) return elsewhere(static_cast<size_t>(event.peer)) ? event.algorithm_bytes : 0;
  if (event.array == 0) return 0;
  const std::vector<double>& sent = trace.arrays[event.array - 1];
  double bytes = 0;
  for (size_t member = 0; member < sent.size(); ++member) bytes += elsewhere(member) ? sent[member] : 0;
  return static_cast<int64_t>(bytes);
}

void add_to(VerbTraffic& to, const VerbTraffic& more) {
  to.calls += more.calls;
  to.logical_bytes += more.logical_bytes;
  to.ring_bytes += more.ring_bytes;
  to.across_bytes += more.across_bytes;
}

}  // namespace

void TrafficCount::add(std::span<const Event> events, const RankTrace& trace, const DeviceMesh& mesh,
                       int gpus_per_node) {
  std::map<Axis, Group> groups;
  for (const Event& event : events) {
    if (event.kind != EventKind::kCollective || mesh.size(event.axis) == 1) continue;
    busy_ns[event.axis] += event.virtual_end_ns - event.virtual_begin_ns;
    if (event.verb == Verb::kRecv) continue;
    if (!groups.contains(event.axis)) groups[event.axis] = mesh.group(event.axis, trace.global_rank);
    add_to(calls[{event.axis, event.verb}],
           {.calls = 1,
            .logical_bytes = event.logical_bytes,
            .ring_bytes = event.algorithm_bytes,
            .across_bytes = across_bytes(event, trace, groups[event.axis], gpus_per_node)});
    if (event.verb == Verb::kSend && event.axis == Axis::kPp) sent_to[event.peer] += event.logical_bytes;
  }
}

void TrafficCount::add(const TrafficCount& other) {
  for (const auto& [key, more] : other.calls) add_to(calls[key], more);
  for (const auto& [axis, more] : other.busy_ns) busy_ns[axis] += more;
  for (const auto& [peer, more] : other.sent_to) sent_to[peer] += more;
}

}  // namespace ranklab
