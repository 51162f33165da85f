#include "core/plan/number_calls.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace ranklab {
namespace {

// Calls that follow one another: a group's collectives, or its messages to or from one peer with the same tag.
using Lane = std::tuple<Axis, Verb, int, int>;

Lane lane_of(const Event& event) {
  const bool message = event.verb == Verb::kSend || event.verb == Verb::kRecv;
  return message ? Lane{event.axis, event.verb, event.peer, event.tag} : Lane{event.axis, Verb::kBarrier, -1, 0};
}

}  // namespace

void number_calls(std::vector<RankTrace>& traces) {
  std::set<int> ranks;
  for (const RankTrace& trace : traces) ranks.insert(trace.global_rank);
  for (RankTrace& trace : traces) {
    std::set<Axis> shared;
    for (const TraceGroup& group : trace.groups)
      if (std::ranges::count_if(group.global_ranks, [&](int rank) { return ranks.contains(rank); }) > 1)
        shared.insert(group.axis);
    std::map<Lane, std::vector<Event*>> lanes;
    for (Event& event : trace.events)
      if (event.kind == EventKind::kCollective && !shared.contains(event.axis)) lanes[lane_of(event)].push_back(&event);
    for (auto& [lane, calls] : lanes) {
      const auto order = [](const Event* call) { return std::tuple(call->virtual_begin_ns, call->sequence); };
      std::ranges::stable_sort(calls, {}, order);
      int64_t next = std::ranges::min(calls, {}, &Event::sequence)->sequence;
      for (Event* call : calls) call->sequence = next++;
    }
  }
}

}  // namespace ranklab
