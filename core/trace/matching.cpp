#include "core/trace/matching.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace ranklab {
namespace {

// Group, sequence and, for messages, the two global ranks, the tag, and the position among messages with that number.
using Key = std::tuple<Axis, std::vector<int>, int64_t, int, int, int, int>;

int global_of(const std::vector<int>& group, int group_rank) {
  return group_rank >= 0 && static_cast<size_t>(group_rank) < group.size() ? group[static_cast<size_t>(group_rank)]
                                                                           : -1;
}

}  // namespace

const std::vector<int>* group_of(const RankTrace& trace, Axis axis) {
  for (const TraceGroup& group : trace.groups) {
    if (group.axis == axis) return &group.global_ranks;
  }
  return nullptr;
}

std::vector<MatchedCall> match_calls(std::span<const RankTrace> traces) {
  std::vector<MatchedCall> calls;
  std::map<Key, size_t> index;
  for (size_t r = 0; r < traces.size(); ++r) {
    const RankTrace& trace = traces[r];
    std::map<std::tuple<Verb, Axis, int, int, int64_t>, int> occurrences;
    for (size_t e = 0; e < trace.events.size(); ++e) {
      const Event& event = trace.events[e];
      if (event.kind != EventKind::kCollective) continue;
      const std::vector<int>* group = group_of(trace, event.axis);
      const bool message = event.verb == Verb::kSend || event.verb == Verb::kRecv;
      Key key = {event.axis, group != nullptr ? *group : std::vector<int>{}, event.sequence, -1, -1, 0, 0};
      if (message) {
        const int peer = group != nullptr ? global_of(*group, event.peer) : -1;
        std::get<3>(key) = event.verb == Verb::kSend ? trace.global_rank : peer;
        std::get<4>(key) = event.verb == Verb::kSend ? peer : trace.global_rank;
        std::get<5>(key) = event.tag;
        std::get<6>(key) = occurrences[{event.verb, event.axis, event.peer, event.tag, event.sequence}]++;
      }
      const auto [it, inserted] = index.try_emplace(key, calls.size());
      if (inserted) calls.push_back({std::get<1>(key), event.sequence, message, {}});
      std::vector<EventRef>& sides = calls[it->second].sides;
      sides.insert(event.verb == Verb::kSend ? sides.begin() : sides.end(), {r, e});
    }
  }
  return calls;
}

}  // namespace ranklab
