#include "core/trace/repeated_calls.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace ranklab {
namespace {

// Calls that follow one another: a group's collectives, or its messages to or from one peer with the same tag.
using CallOrder = std::tuple<Axis, Verb, int, int>;

CallOrder order_of(const Event& event) {
  const bool message = event.verb == Verb::kSend || event.verb == Verb::kRecv;
  return message ? CallOrder{event.axis, event.verb, event.peer, event.tag}
                 : CallOrder{event.axis, Verb::kBarrier, -1, 0};
}

}  // namespace

void number_repeated_calls(std::vector<RankTrace>& traces) {
  std::set<int> kept;
  for (const RankTrace& trace : traces) kept.insert(trace.global_rank);
  for (RankTrace& trace : traces) {
    std::set<Axis> shared;
    for (const TraceGroup& group : trace.groups)
      if (std::ranges::count_if(group.global_ranks, [&](int rank) { return kept.contains(rank); }) > 1)
        shared.insert(group.axis);
    std::map<CallOrder, std::vector<Event*>> orders;
    for (Event& event : trace.events)
      if (event.kind == EventKind::kCollective && !shared.contains(event.axis))
        orders[order_of(event)].push_back(&event);
    for (auto& [order, calls] : orders) {
      const auto began = [](const Event* call) { return std::tuple(call->virtual_begin_ns, call->sequence); };
      std::ranges::stable_sort(calls, {}, began);
      int64_t next = std::ranges::min(calls, {}, &Event::sequence)->sequence;
      for (Event* call : calls) call->sequence = next++;
    }
  }
}

}  // namespace ranklab
